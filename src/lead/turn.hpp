// One turn at the lead (LeadTurn), the work that a leader does in it (LeadDuties), and whether it may sleep afterwards (LeadRest).
//
// Threads: a LeadTurn is used by the thread that made it, except that the thread that takes a function away from the leader clears its
// `awaited` (Run::awaited), under the lock. LeadDuties are called under the engine's lock, which work() releases while it runs functions.
//
// No state: LeadDuties is an interface, a LeadTurn and a LeadRest are values.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "lead/baton.hpp"
#include "lead/engine_lock.hpp"
#include "lead/large_queue.hpp"
#include "lead/spin.hpp"

namespace rove {

// How long a leader has slept in vain before its node counts as idle, and wakes as seldom as it can.
inline constexpr auto kIdleAfter = std::chrono::seconds(1);

// One thread's turn at the lead, and what it needs for that. Made by the thread that is going to lead, on its stack.
struct LeadTurn {
    HeldLock& lock;
    Baton::Turn baton;
    // The signals that it spins on; null: none yet. Passed from leader to leader, which is cheaper than to make it for each turn.
    std::unique_ptr<AwaitedSignals> awaited{};
    // Since when it has slept in vain: each sleep since then has ended because its time was over. Then it sleeps again at once.
    std::optional<TimePoint> in_vain_since{};
    bool holds_back = false;  // it waits for a short time, in which functions are left to other threads
    LargeQueue::Place* large_beneath = nullptr;  // a place that this thread keeps while it waits
    // Nothing has happened on the node for long, as found before this sleep. Then the leader sleeps until something rings, and
    // Engine::each_second() looks for what has not rung.
    bool is_idle = false;
    [[nodiscard]] bool runs_functions() const { return !baton.quiet && !holds_back; }
    [[nodiscard]] bool has_arrived() const { return awaited != nullptr && awaited->arrived(); }
    // For a thread that stops looking: links that have ended must not wait for its next turn at the lead.
    void drop_awaited() noexcept { awaited.reset(); }
};

// Whether the leader may sleep, as its duties see it.
struct LeadRest {
    bool pending = false;              // there is something to do: it must not sleep
    bool restless = false;             // it must check again soon, because no bell announces what it waits for
    std::optional<TimePoint> until{};  // when the next thing is due
};

// The work of a leader.
class LeadDuties {
public:
    // Handles what has arrived and what is due. Returns how many things that were. The turn may be lost when it returns.
    virtual unsigned work(LeadTurn& turn) REQUIRES(lock_of<EngineLock>) = 0;
    // Puts the signals that announce more work into `turn.awaited`.
    virtual void await_signals(LeadTurn& turn) noexcept REQUIRES(lock_of<EngineLock>) = 0;
    // Whether frames wait for room that peers give without a signal.
    [[nodiscard]] virtual bool waits_for_room() const REQUIRES(lock_of<EngineLock>) = 0;
    // Asked once the fabric knows that the leader is about to sleep, so that nothing that arrives afterwards is missed.
    [[nodiscard]] virtual LeadRest rest(const LeadTurn& turn) REQUIRES(lock_of<EngineLock>) = 0;
    // The leader has slept, or was about to: what is due by the number of turns is due now.
    virtual void woke_up() REQUIRES(lock_of<EngineLock>) = 0;
    // Whether the leader is in a function, which a thread that keeps watch may take from it.
    [[nodiscard]] virtual bool runs_function() const REQUIRES(lock_of<EngineLock>) = 0;
    // The leader's function has run long: it keeps running beside the new leader, and its thread loses the lead.
    virtual void take_function_away() noexcept REQUIRES(lock_of<EngineLock>) = 0;
    // A follower has become available. A function may have waited for a thread that can take the lead over.
    virtual void follower_came() REQUIRES(lock_of<EngineLock>) = 0;

protected:
    ~LeadDuties() = default;
};

}  // namespace rove
