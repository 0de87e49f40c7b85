// LeftFrames: handles what other engines of the node have left for this one (BetweenEngines): answers for its peers and for its calls, notices
// that calls which were sent on to its peers are over, and questions for code with their answers.
//
// Threads: the leader, under the engine's lock. Invariants: what is left is done once, in its order. It has no state of its own.
#pragma once

#include "engine/link_ends.hpp"
#include "engine/reply_receiver.hpp"
#include "peer/between_engines.hpp"
#include "peer/code_exchange.hpp"
#include "peer/sender.hpp"

namespace rove {

class LeftFrames {
public:
    // They outlive it.
    LeftFrames(const OtherEngines& others, Sender& sender, ReplyReceiver& replies, LinkEnds& link_ends,
               CodeExchange& exchange)
        : others_(others), sender_(sender), replies_(replies), link_ends_(link_ends), exchange_(exchange) {}

    [[nodiscard]] bool has_any() const { return others_.have_left_any(); }
    // Nothing more is to be left for other engines now, so no frames are taken from peers.
    [[nodiscard]] bool must_wait() const { return others_.must_wait(); }
    // Does some of it. Returns how much.
    unsigned take() REQUIRES(lock_of<EngineLock>);

private:
    void handle(const LeftForEngine& left) REQUIRES(lock_of<EngineLock>);

    const OtherEngines& others_;
    Sender& sender_;
    ReplyReceiver& replies_;
    LinkEnds& link_ends_;
    CodeExchange& exchange_;
};

}  // namespace rove
