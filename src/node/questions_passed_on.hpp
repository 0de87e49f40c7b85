// Questions for code that were passed on and are not answered yet: that nobody has the code is passed back only where somebody asked.
//
// Threads: under the node's lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <vector>

#include "base/ids.hpp"
#include "wire/frame.hpp"

namespace rove {

struct PeerState;

class QuestionsPassedOn {
public:
    // Beyond so many the oldest is forgotten, and who asked it waits for kCodeWaitMax. At 80 bytes each, 320 KiB.
    static constexpr std::size_t kMax = 4096;

    struct Question {
        const PeerState *from, *to;  // compared with peers that live, nothing else
        wire::NeedCode need;
    };

    void add(const Question& question) {
        if (questions_.size() >= kMax) questions_.pop_front();
        questions_.push_back(question);
    }
    // Whether this was asked of that peer for that asker; it is not any more.
    [[nodiscard]] bool answered(const PeerState& by, NodeId asker, const wire::NeedCode& need) {
        const auto asked = std::find_if(questions_.begin(), questions_.end(), [&](const Question& each) {
            return each.to == &by && each.need.asker == asker && each.need.function == need.function &&
                   each.need.handle == need.handle;
        });
        if (asked == questions_.end()) return false;
        questions_.erase(asked);
        return true;
    }
    // A peer is gone: what it had asked is forgotten, and what others had asked it is given, in its order.
    [[nodiscard]] std::vector<Question> without(const PeerState& gone) {
        std::vector<Question> unanswered;
        for (const Question& each : questions_)
            if (each.to == &gone && each.from != &gone) unanswered.push_back(each);
        std::erase_if(questions_, [&](const Question& each) { return each.from == &gone || each.to == &gone; });
        return unanswered;
    }
    [[nodiscard]] std::size_t size() const { return questions_.size(); }

private:
    std::deque<Question> questions_;
};

}  // namespace rove
