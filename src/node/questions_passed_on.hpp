// Questions for code that were passed on, and what has come back: an answer is passed back only where somebody asked, and on the way that
// its question came.
//
// Threads: under the node's lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "wire/frame.hpp"

namespace rove {

struct PeerState;

class QuestionsPassedOn {
public:
    // Beyond so many the oldest is forgotten, and who asked it waits for kCodeWaitMax; of one peer's, its own oldest. An honest peer has
    // one for each of those that it passes on for. At 144 bytes each, 144 KiB.
    static constexpr std::size_t kMax = 1024;
    static constexpr std::size_t kOfPeerMax = 64;

    struct Question {
        const PeerState *from, *to;  // compared with peers that live, nothing else
        wire::NeedCode need;
        // The piece of its code that came last.
        std::optional<wire::CodeChunk> last;
        std::size_t last_ends = 0;
    };

    void add(const PeerState& from, const PeerState& to, const wire::NeedCode& need);
    // The peer that asked this of that one, for that asker, and does not any more; null: nobody did.
    [[nodiscard]] const PeerState* answered(const PeerState& by, NodeId asker, const wire::NeedCode& need);
    // The peer whose question to that one, for that asker, this piece answers; null: nobody's does. The pieces of a package's part come in
    // their order, and what answers one question is of one package, whose manifest comes first.
    [[nodiscard]] const PeerState* takes_piece(const PeerState& by, NodeId asker, const wire::CodeChunk& piece,
                                               std::size_t bytes);
    // A peer is gone: what it had asked is forgotten, and what others had asked it is given, in its order.
    [[nodiscard]] std::vector<Question> without(const PeerState& gone);

private:
    std::deque<Question> questions_;
};

}  // namespace rove
