// Code that a peer has asked for. It is sent piece by piece, as fast as the peer takes it, so what waits here is as large as the questions,
// whatever the code's size.
//
// Threads: under the engine's lock. Invariants: at most kMax answers wait, and one for each asker and package. The first one is being sent.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "package/digest.hpp"
#include "wire/frame.hpp"

namespace rove {

// One package for one node, which may be another one than the peer that asks for it.
struct CodeAnswer {
    wire::NeedCode need;
    Digest package;
    std::array<std::uint32_t, 3> items{};  // the manifest, and a slice of each form
    std::uint16_t item_count = 0;
    bool is_all = false;     // no form for that target is left out: not sent by this node, or not here
    std::size_t item = 0;    // of them: the one that is being sent …
    std::size_t offset = 0;  // … from here on
};

class CodeAnswers {
public:
    // An honest peer has two questions of its own, and those that it passes on for others. At 136 bytes, 9 KiB a peer.
    static constexpr std::size_t kMax = 64;

    // A node that asks again has lost an item: its package is sent from the beginning again. False: too many answers wait already.
    [[nodiscard]] bool add(const CodeAnswer& answer) {
        const auto same = std::find_if(answers_.begin(), answers_.end(), [&](const CodeAnswer& each) {
            return each.need.asker == answer.need.asker && each.package == answer.package;
        });
        if (same == answers_.end() && answers_.size() >= kMax) return false;
        if (same == answers_.end())
            answers_.push_back(answer);
        else
            *same = answer;
        return true;
    }
    [[nodiscard]] bool empty() const { return answers_.empty(); }
    [[nodiscard]] CodeAnswer& first() { return answers_.front(); }
    void drop_first() { answers_.pop_front(); }
    void clear() { answers_.clear(); }

private:
    std::deque<CodeAnswer> answers_;
};
static_assert(sizeof(CodeAnswer) <= 136);

}  // namespace rove
