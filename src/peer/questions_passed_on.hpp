// Questions for code that were passed on, and what was answered: an answer is passed back only where somebody asked, and on the way that
// its question came.
//
// Threads: under the engine's lock. Invariants: at most kMax questions, and kOfPeerMax from one peer, whatever it sends. `to`, and
// `from` where it is this engine's, are peers with a link: without() removes a peer's questions when its link has ended, asker_left() those of
// other engines' peers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "lead/engine_lock.hpp"
#include "wire/frame.hpp"

namespace rove {

class PeerState;

class QuestionsPassedOn {
public:
    // Questions of all peers, and of one. A question has its place while it waits, for kCodeWaitMax at most: so no more than this many wait at
    // peers that do not answer. A further one replaces the oldest of those that no longer wait. At 160 bytes each, 160 KiB.
    static constexpr std::size_t kMax = 1024;
    static constexpr std::size_t kOfPeerMax = 64;

    // Who asked: a peer of this engine, or one of another engine, by its name.
    struct Asker {
        const PeerState* peer = nullptr;  // compared with peers that live, nothing else
        unsigned engine = 0;              // where peer is null
        NodeId name = kNoNode;
        Asker() = default;
        Asker(const PeerState& here) : peer(&here) {}  // NOLINT(google-explicit-constructor): most are
        Asker(unsigned of_engine, NodeId with_name) : engine(of_engine), name(with_name) {}
        [[nodiscard]] bool is_nobody() const { return peer == nullptr && name == kNoNode; }
        bool operator==(const Asker&) const = default;
        bool operator==(const PeerState* here) const { return peer == here && name == kNoNode; }
    };
    struct Question {
        Asker from;
        const PeerState* to;  // compared as above
        wire::NeedCode need;
        TimePoint at;
        bool waits = true;  // nothing has arrived for its asker since
        // A manifest has arrived for its asker since, for another question: both may be about that package.
        bool may_be_answered = false;
        // The piece of its code that came last.
        std::optional<wire::CodeChunk> last;
        std::size_t last_ends = 0;
        std::uint64_t order = 0;  // counts questions and pieces: when it was asked, or took its last piece
        [[nodiscard]] bool asks(const wire::NeedCode& same) const;
        // All its code has arrived, or may have for another question.
        [[nodiscard]] bool is_answered() const;
    };

    enum class Added : std::uint8_t {
        asked,       // it is to be passed on
        asked_once,  // it was passed on and waits for its answer, which serves this time, too
        no_room,
    };
    [[nodiscard]] Added add(const Asker& from, const PeerState& to, const wire::NeedCode& need, TimePoint now)
        REQUIRES(lock_of<EngineLock>);
    // Removes a question that add() counted as asked, and that could then not be sent.
    void take_back(const Asker& from, const PeerState& to, const wire::NeedCode& need) REQUIRES(lock_of<EngineLock>);
    // The peer that asked this of that one, for that asker, and does not any more; or nobody.
    [[nodiscard]] Asker answered(const PeerState& by, NodeId asker, const wire::NeedCode& need)
        REQUIRES(lock_of<EngineLock>);
    // The peer whose question to that one, for that asker, this piece answers; or nobody. The pieces of a package's item arrive in
    // their order, and what answers one question is of one package, whose manifest is first. A manifest is for the oldest question without an
    // answer, if there is one, because questions are answered in their order. Any other piece is for the question that was asked or took a piece
    // last: an asker may have asked by another way before, and the peer there may no longer pass code on.
    [[nodiscard]] Asker takes_piece(const PeerState& by, NodeId asker, const wire::CodeChunk& piece, std::size_t bytes,
                                    TimePoint now) REQUIRES(lock_of<EngineLock>);
    // A peer is gone: what it had asked is forgotten, and what others had asked it, and it has not answered, is returned, in its order.
    [[nodiscard]] std::vector<Question> without(const PeerState& gone) REQUIRES(lock_of<EngineLock>);
    // Another engine's peer is gone: what it had asked is forgotten.
    void asker_left(const Asker& gone) REQUIRES(lock_of<EngineLock>);

private:
    std::deque<Question> questions_;
    std::uint64_t next_order_ = 0;
};

}  // namespace rove
