// ReplyReceiver: what is done with answers that arrive: those to calls of this engine end them, those to calls of another engine are left to that
// one, and those to calls of other nodes are sent on.
//
// Threads: under the engine's lock. It has no state of its own.
//
// Invariants: a call is ended only by an answer from the peer to which it was sent. If that is a member, any member may answer, because members
// send calls on.
#pragma once

#include "engine/own_calls.hpp"
#include "peer/between_engines.hpp"
#include "peer/routes.hpp"
#include "peer/sender.hpp"

namespace rove {

class ReplyReceiver {
public:
    // They outlive it.
    ReplyReceiver(OwnCalls& own_calls, Sender& sender, const Routes& routes, const OtherEngines& others)
        : own_calls_(own_calls), sender_(sender), routes_(routes), others_(others) {}

    // A frame of a kind that is an answer (wire::is_answer).
    void receive(PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);
    // `from`: null: this node's own answer.
    void on_reply(PeerState* from, const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);
    // An answer that another engine has left, because it is to a call of this one: of another member, or of this node.
    void receive_left(const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);

private:
    void on_reply_part(PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] static bool may_answer(const PeerState* from, const CallSlot& slot) REQUIRES(lock_of<EngineLock>);
    void end_by(CallSlot& slot, const wire::Frame& reply) REQUIRES(lock_of<EngineLock>);
    // Of a result that is larger than a frame. The part was checked.
    void take_part(CallSlot& slot, const wire::Part& part, Bytes bytes) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool leave_to_caller(const PeerState* from, const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);

    OwnCalls& own_calls_;
    Sender& sender_;
    const Routes& routes_;
    const OtherEngines& others_;
};

}  // namespace rove
