// Idling: what a leader does when it finds nothing to do. It spins, because the thread that it waits for mostly runs on another core; then
// yields, in case that thread waits for this core; then sleeps.
//
// Threads: the leader, under the engine's lock, which is released while it looks and sleeps. The lead may be lost when a call returns.
//
// Invariants: whenever the lock is released here, Baton records the leader as idle (pause, fall_asleep), so that another thread may take the
// lead. Before a sleep the sleep is announced to the fabric (announce_sleep), and then the mailboxes are checked once more: so a frame that
// arrives rings.
#pragma once

#include <cstdint>

#include "fabric/fabric.hpp"
#include "lead/turn.hpp"
#include "lead/wakes.hpp"
#include "rove/node.hpp"

namespace rove {

class Idling {
public:
    // The parts of the lead that this one uses.
    Idling(LeadDuties& duties, EngineLock& mutex, Baton& baton, Wakes& wakes)
        : duties_(duties), mutex_(mutex), baton_(baton), wakes_(wakes) {}
    void open(fabric::Fabric& fabric, Waiting waiting) REQUIRES(lock_of<EngineLock>) {
        fabric_ = &fabric;
        waiting_ = waiting;
    }

    // Called after a step that handled that many things. If it handled none, waits until there may be something to do, or until the
    // deadline.
    void after(unsigned handled, LeadTurn& turn, const Deadline& deadline) REQUIRES(lock_of<EngineLock>) {
        if (handled > 0) {
            crowded_steps_ = 0;
            turn.in_vain_since.reset();
            quiet_since_.reset();
            return;
        }
        ++steps_in_vain_;
        if (!baton_.lost(turn.baton) && !(deadline && Clock::now() >= *deadline)) wait(turn, deadline);
    }
    // Spins for as long as the node's options say. True: there may be something to do.
    [[nodiscard]] bool spin(LeadTurn& turn) REQUIRES(lock_of<EngineLock>);
    // A frame begins to wait for room: the leader checks for room at once again, however many checks have failed before.
    void expect_room() REQUIRES(lock_of<EngineLock>) { crowded_steps_ = 0; }
    // Steps in which a leader found nothing to do, ever.
    [[nodiscard]] std::uint64_t steps_in_vain() const REQUIRES(lock_of<EngineLock>) { return steps_in_vain_; }

private:
    void wait(LeadTurn& turn, Deadline deadline) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool look_for_room(LeadTurn& turn) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool look_unlocked(LeadTurn& turn, unsigned turns) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool yield(LeadTurn& turn) REQUIRES(lock_of<EngineLock>);
    // The same result, after as many yields as one wait has.
    [[nodiscard]] bool yield_for_a_while(LeadTurn& turn, const Deadline& deadline) REQUIRES(lock_of<EngineLock>);
    void sleep(LeadTurn& turn, Deadline deadline) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool is_wanted() const { return wakes_.was_woken() || mutex_.is_wanted(); }

    LeadDuties& duties_;
    EngineLock& mutex_;
    Baton& baton_;
    Wakes& wakes_;
    fabric::Fabric* fabric_ GUARDED_BY(lock_of<EngineLock>) = nullptr;
    Waiting waiting_ GUARDED_BY(lock_of<EngineLock>) = Waiting::balanced;
    unsigned spin_turns_ GUARDED_BY(lock_of<EngineLock>) = kSpinTurnsMax;
    // Consecutive steps in which nothing arrived and frames waited for room.
    unsigned crowded_steps_ GUARDED_BY(lock_of<EngineLock>) = 0;
    std::uint64_t steps_in_vain_ GUARDED_BY(lock_of<EngineLock>) = 0;
    // Since when every sleep of every leader has been in vain: a program that polls has a turn for each poll.
    std::optional<TimePoint> quiet_since_ GUARDED_BY(lock_of<EngineLock>);
};

}  // namespace rove
