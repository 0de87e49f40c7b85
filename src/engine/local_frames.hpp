// LocalFrames: calls that a node sends to itself. They are served as any others are, from a queue instead of a mailbox.
//
// Threads: under the engine's lock. Invariants: the frames are in the order in which they were sent, and within kOutboxBytesMax. `parked_` is
// about the first frame.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string>

#include "lead/lead.hpp"
#include "peer/peer_state.hpp"

namespace rove {

class LocalFrames {
public:
    // `name`: of the node, for messages.
    LocalFrames(Lead& lead, std::function<std::string()> name) : lead_(lead), name_(std::move(name)) {}

    // A call by its function's id. overloaded: as much waits as may.
    [[nodiscard]] Status add(const wire::CallContext& call, const FunctionId& function, Bytes payload)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool is_empty() const REQUIRES(lock_of<EngineLock>) { return frames_.empty(); }
    // The first, taken out: functions that run may add more. Precondition: there is one.
    [[nodiscard]] std::list<ByteBuffer> take_first() REQUIRES(lock_of<EngineLock>);
    // It waits, and is the first again. Needs no memory.
    void put_back(std::list<ByteBuffer> first) noexcept REQUIRES(lock_of<EngineLock>);
    // The event for which the first frame waits; nullopt: it has not been handled yet.
    [[nodiscard]] std::optional<Parked>& parked() REQUIRES(lock_of<EngineLock>) { return parked_; }
    // For parts that are made together with this one, and use it under the lock.
    [[nodiscard]] std::optional<Parked>& parked_place() NO_THREAD_SAFETY_ANALYSIS { return parked_; }

private:
    Lead& lead_;
    const std::function<std::string()> name_;
    std::list<ByteBuffer> frames_ GUARDED_BY(lock_of<EngineLock>);
    std::size_t bytes_ GUARDED_BY(lock_of<EngineLock>) = 0;
    std::optional<Parked> parked_ GUARDED_BY(lock_of<EngineLock>);
};

}  // namespace rove
