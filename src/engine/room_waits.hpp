// RoomWaits: threads that wait until a frame fits into a peer's mailbox. Credit wakes nobody: the leader checks for each thread that
// waits whether there is room (Idling::look_for_room).
//
// Threads: under the engine's lock, which wait() releases while it waits.
//
// Invariants: `waits_` lists the threads that are in wait() and found no room; each entry is on its thread's stack. A thread that was notified
// is notified again only after it has looked itself.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lead/runner.hpp"
#include "peer/peer_state.hpp"

namespace rove {

class RoomWaits {
public:
    // `name`: of the node, for messages.
    RoomWaits(Lead& lead, Runner& runner, std::function<std::string()> name)
        : lead_(lead), runner_(runner), name_(std::move(name)) {}

    // Waits for room for a frame of that size. timed_out: there was none in that time. disconnected: the link has ended. cancelled: the node
    // is at its end.
    [[nodiscard]] Status wait(PeerState& peer, HeldLock& lock, fabric::Traffic traffic, std::size_t bytes,
                              Deadline deadline, Runner::Manner manner) REQUIRES(lock_of<EngineLock>);
    // By the leader: notifies those that have room now. Returns how many these are.
    unsigned tell() REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] std::size_t count() const REQUIRES(lock_of<EngineLock>) { return waits_.size(); }
    [[nodiscard]] bool is_empty() const REQUIRES(lock_of<EngineLock>) { return waits_.empty(); }

private:
    struct One {
        PeerState& peer;
        fabric::Traffic traffic;
        std::size_t bytes;  // of the frame
        bool told = false;
        [[nodiscard]] bool has_room() const REQUIRES(lock_of<EngineLock>);
    };

    Lead& lead_;
    Runner& runner_;
    const std::function<std::string()> name_;
    std::vector<One*> waits_ GUARDED_BY(lock_of<EngineLock>);
};

}  // namespace rove
