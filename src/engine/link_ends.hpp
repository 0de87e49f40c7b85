// LinkEnds: what is done when a link has ended, and with the calls and replies that were on their way over it.
//
// A stream ends before the goodbye arrives that says why, because that is sent over another socket. So the transport's end alone
// gives no reason yet: for kGoodbyeWait the link is kept, nothing is sent by it, and what has arrived is still served.
//
// Replies that the other side has not taken are kept, and sent again when the two have met again: a call's id has a generation, so
// one that arrives twice is dropped. Calls are never sent twice. Those that had been sent on and not been taken end as disconnected
// at once; those that were taken end so when the process that took them is known to have gone.
//
// Threads: under the engine's lock, which await_goodbye() releases while it waits.
//
// Invariants: each step of clean_up() may be done twice, and none releases a thing before the purpose of that thing is served. After it the peer
// has no link, is not in Routes, and no call of this engine flies to it. A link that has ended is kept until no function runs on its frames.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/answers.hpp"
#include "lead/housekeeping_clock.hpp"
#include "peer/code_exchange.hpp"
#include "peer/frame_checks.hpp"
#include "peer/payload_parts.hpp"
#include "services/service.hpp"

namespace rove {

class LinkEnds {
public:
    // The parts of the node that this one uses. They outlive it.
    struct Beside {
        Lead& lead;
        Runner& runner;
        HousekeepingClock& housekeeping;
        Routes& routes;
        const OtherEngines& others;
        AbsentMembers& absent;
        const FrameChecks& checks;
        Answers& answers;
        OwnCalls& own_calls;
        ReplyReceiver& replies;
        CodeExchange& exchange;
        PayloadParts& payload_parts;
        Services services;
        Complaints& complaints;
        std::function<std::string()> name;  // of this node, for messages
    };
    explicit LinkEnds(Beside beside)
        : lead_(beside.lead),
          runner_(beside.runner),
          housekeeping_(beside.housekeeping),
          routes_(beside.routes),
          others_(beside.others),
          absent_(beside.absent),
          checks_(beside.checks),
          answers_(beside.answers),
          own_calls_(beside.own_calls),
          replies_(beside.replies),
          exchange_(beside.exchange),
          payload_parts_(beside.payload_parts),
          services_(beside.services),
          complaints_(beside.complaints),
          name_(std::move(beside.name)) {}

    // The leader has seen that the link cannot be used any more.
    void notice(PeerState& peer) REQUIRES(lock_of<EngineLock>);
    // Somebody knows that the peer is gone: clean_up() is to be done by the leader. Precondition: there is a link. Needs no memory.
    void lose(PeerState& peer, Error why) REQUIRES(lock_of<EngineLock>);
    // Ends what was on its way, notifies whoever waits, and takes the link from the peer. Where a step finds no memory it throws, and all of
    // this is done once more in the next turn. Precondition: there is a link.
    void clean_up(PeerState& peer) REQUIRES(lock_of<EngineLock>);
    // Calls that nobody will answer any more, or that somebody else answers: then the answer came first, or is dropped.
    void end_orphans() REQUIRES(lock_of<EngineLock>);

    // A peer of that name, of this engine or of another one, has gone: forgets its calls that were sent on to peers of this engine.
    void caller_left(NodeId name) REQUIRES(lock_of<EngineLock>);

    // Waits for the peer's goodbye, which says why its link has ended. For the thread that wants to meet the peer again: others' calls are served
    // in the meantime. Nothing runs on top of it, because it may be about to send what it reads in place.
    [[nodiscard]] Status await_goodbye(PeerState& peer, HeldLock& lock, Deadline deadline)
        REQUIRES(lock_of<EngineLock>);

    // Links that ended: a function may still run on a frame of theirs.
    void drop_buried() REQUIRES(lock_of<EngineLock>) { buried_.clear(); }
    // Frames that waited for peers which have ended; their memory is freed in small steps.
    [[nodiscard]] DroppedBytes& dropped() REQUIRES(lock_of<EngineLock>) { return dropped_; }
    // How many links were cleaned up, ever.
    [[nodiscard]] std::uint64_t count() const REQUIRES(lock_of<EngineLock>) { return count_; }

private:
    void take_last_replies(PeerState& peer) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool leave_routes(PeerState& peer) REQUIRES(lock_of<EngineLock>);
    void keep_replies_of(PeerState& peer) REQUIRES(lock_of<EngineLock>);
    void end_sent_on(PeerState& peer, bool member, const Error& not_sent) REQUIRES(lock_of<EngineLock>);

    Lead& lead_;
    Runner& runner_;
    HousekeepingClock& housekeeping_;
    Routes& routes_;
    const OtherEngines& others_;
    AbsentMembers& absent_;
    const FrameChecks& checks_;
    Answers& answers_;
    OwnCalls& own_calls_;
    ReplyReceiver& replies_;
    CodeExchange& exchange_;
    PayloadParts& payload_parts_;
    const Services services_;
    Complaints& complaints_;
    const std::function<std::string()> name_;
    std::vector<std::shared_ptr<fabric::Link>> buried_ GUARDED_BY(lock_of<EngineLock>);
    DroppedBytes dropped_ GUARDED_BY(lock_of<EngineLock>);
    std::uint64_t count_ GUARDED_BY(lock_of<EngineLock>) = 0;
};

}  // namespace rove
