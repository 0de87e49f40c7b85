// Answers: how calls that this node runs, or refuses to run, are answered: at once into the caller's mailbox, by way of other nodes, in parts
// where a result is larger than a frame, or, for a call of this node's own, to its slot.
//
// Threads: what takes the engine's lock says so (EXCLUDES); all else runs under it, and releases it only if it is given the HeldLock.
//
// Invariants: each call that wants an answer gets one, a reply or an error. An error needs memory only for its frame, and only if that has to
// wait for room.
#pragma once

#include <functional>
#include <string>

#include "base/fork.hpp"
#include "engine/pieces.hpp"
#include "engine/reply_receiver.hpp"
#include "engine/room_waits.hpp"
#include "peer/complaints.hpp"
#include "peer/routes.hpp"
#include "peer/sender.hpp"

struct rove_here;

namespace rove {

class Answers {
public:
    // The parts of the node that this one uses. They outlive it.
    struct Beside {
        Lead& lead;
        Runner& runner;
        RoomWaits& rooms;
        Sender& sender;
        const Routes& routes;
        ReplyReceiver& replies;
        Complaints& complaints;
        std::function<std::string()> name;  // of this node, for messages
    };
    explicit Answers(Beside beside)
        : lead_(beside.lead),
          runner_(beside.runner),
          rooms_(beside.rooms),
          sender_(beside.sender),
          routes_(beside.routes),
          replies_(beside.replies),
          complaints_(beside.complaints),
          name_(std::move(beside.name)) {}

    // ---- by threads that do not hold the lock
    // The fast path of reply(): does not wait. False: nothing was sent, and reply() has more to do. Precondition: `data` is of one frame.
    [[nodiscard]] bool try_reply(const wire::CallContext& to, RanAs ran, Bytes data) noexcept
        EXCLUDES(lock_of<EngineLock>);
    // Waits for room where the caller is slow to take results. invalid: the result is over the limit, and the call not answered.
    [[nodiscard]] Status reply(const wire::CallContext& to, RanAs ran, const Pieces& data)
        EXCLUDES(lock_of<EngineLock>);
    // In the child of a fork nothing happens: the call is the parent's.
    void reply_error(const wire::CallContext& to, const Error& error) EXCLUDES(lock_of<EngineLock>);

    // ---- by threads that hold it
    // Does not wait. `data`: of one frame.
    void end_at_once(const wire::CallContext& call, RanAs ran, Bytes data = {}) REQUIRES(lock_of<EngineLock>);
    // A post that failed is a line in the log.
    void end_with_error(const wire::CallContext& call, const Error& error) noexcept REQUIRES(lock_of<EngineLock>);

private:
    [[nodiscard]] Status end_with_reply(const wire::CallContext& call, RanAs ran, const Pieces& data, HeldLock& lock)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool reply_at_once(const wire::CallContext& call, RanAs ran, Bytes data)
        REQUIRES(lock_of<EngineLock>);
    // False: the caller's node does not take them.
    [[nodiscard]] bool reply_in_parts(const wire::CallContext& call, const Pieces& data, HeldLock& lock)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool await_room(NodeId to, std::size_t bytes, std::size_t waiting, HeldLock& lock)
        REQUIRES(lock_of<EngineLock>);
    void tell_of_failed_post(const wire::CallContext& call, const Error& error) noexcept REQUIRES(lock_of<EngineLock>);
    void send(wire::FrameHeader reply, Bytes payload) noexcept REQUIRES(lock_of<EngineLock>);

    Lead& lead_;
    Runner& runner_;
    RoomWaits& rooms_;
    Sender& sender_;
    const Routes& routes_;
    ReplyReceiver& replies_;
    Complaints& complaints_;
    const std::function<std::string()> name_;
    const MakingProcess process_;
};

}  // namespace rove
