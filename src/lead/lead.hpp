// Lead: which thread works for an engine, how it waits when nothing arrives, and how the work changes hands.
//
// One thread at a time *leads*: it does the engine's work (`Duties::work`) turn after turn. With nothing to do it checks the mailboxes' next
// signals: it spins, then yields, then sleeps. All other threads are *followers* (the node's own, which wait for the lead) or *wait* for
// something to happen, and may lead until it does. The lead changes hands
//   - to a thread that waits, at once if the leader is a thread of the node's own that has nothing to do: a reply is then seen by the
//     thread that wants it;
//   - to a follower, if a function runs long: before the function runs if it is known to, otherwise as soon as the thread that keeps
//     watch notices it. The function keeps running in its thread.
// Baton has the state of the lead, changed in steps that a test runs in all orders. Lead is what threads do between the steps. Idling is
// how a leader with nothing to do waits; Wakes is how threads are woken.
//
// Threads. Everything runs under the engine's lock, which this class has, unless it says otherwise. The lock is released while a leader
// checks for signals, sleeps or makes way, and while its duties run functions. A thread that has released it asks lost() before it
// continues as leader.
//
// Invariants: those of Baton; what Baton's steps return is passed to Wakes before the lock is released. Each thread that took the lead has
// given or lost it before it waits for something else. A node that is stopping stays so.
#pragma once

#include "base/clock.hpp"
#include "lead/baton.hpp"
#include "lead/engine_lock.hpp"
#include "lead/idling.hpp"
#include "lead/lookout.hpp"
#include "lead/turn.hpp"
#include "lead/wakes.hpp"
#include "rove/node.hpp"

namespace rove {

class Lead {
public:
    using Lock = HeldLock;

    using Turn = LeadTurn;
    using Rest = LeadRest;
    using Duties = LeadDuties;

    // The fabric outlives all calls here but the destructor.
    explicit Lead(Duties& duties) : duties_(duties) {}
    // Called before any thread leads. `threads`: for functions that run long (NodeOptions::threads).
    [[nodiscard]] Status open(fabric::Fabric& fabric, Waiting waiting, unsigned threads);

    // ---- the lock
    [[nodiscard]] EngineLock& mutex() { return mutex_; }
    // ---- its parts
    [[nodiscard]] Wakes& wakes() { return wakes_; }
    [[nodiscard]] Idling& idling() { return idling_; }

    // ---- one turn
    // Precondition: the lead is free for this thread.
    void take(Turn& turn) REQUIRES(lock_of<EngineLock>);
    void give(Turn& turn) REQUIRES(lock_of<EngineLock>);
    // Gives the lead to a follower, because the next function runs long. Precondition: there is one.
    void give_for_long(Turn& turn) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool lost(const Turn& turn) const REQUIRES(lock_of<EngineLock>) { return baton_.lost(turn.baton); }
    [[nodiscard]] bool lost(std::uint64_t term) const REQUIRES(lock_of<EngineLock>) { return baton_.lost(term); }
    // One turn of work; if there is none, waits for work until the deadline. Returns what Duties::work does.
    unsigned step(Turn& turn, Deadline deadline) REQUIRES(lock_of<EngineLock>);
    // Releases the lock for those that want it now.
    void make_way(Turn& turn) REQUIRES(lock_of<EngineLock>);

    // ---- threads that wait for something to happen on the node
    // Leads, or waits for the leader, until waiter.is_over(). wants_change() says whether the way of waiting is to change, and change(turn)
    // changes it. `untold`: this thread has just handed over the lead, and no other thread has been woken.
    template <typename Waiter>
    void wait(Turn& turn, Deadline deadline, Waiter& waiter, bool untold) REQUIRES(lock_of<EngineLock>);
    // For a thread that asks whether something has happened, and does not wait. True: no other thread leads, so it is to take the lead for
    // one turn.
    [[nodiscard]] bool asks() REQUIRES(lock_of<EngineLock>);
    // Waits until no thread leads. False: the leader has done something, the time is over, or interrupt() was called.
    [[nodiscard]] bool wait_while_led(Lock& lock, Deadline deadline) REQUIRES(lock_of<EngineLock>);
    // For the phases of the node's end: waits until one is done or the time is over, and wakes the leader once a millisecond.
    template <typename Done>
    void wait_briefly(Lock& lock, TimePoint until, const Done& done) REQUIRES(lock_of<EngineLock>);

    // ---- the node's own threads, from start to end
    // Leads whenever no waiting thread does, keeps watch, or waits for its turn. Returns after stop().
    void serve(Lock& lock) REQUIRES(lock_of<EngineLock>);
    // The standby thread: it runs nothing, and leads only while all others are in functions. Returns after stop().
    void stand_by(Lock& lock) REQUIRES(lock_of<EngineLock>);
    void stop() REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool is_stopping() const REQUIRES(lock_of<EngineLock>) { return stopping_; }

    // ---- functions that a leader runs
    [[gnu::always_inline]] void begin_run() REQUIRES(lock_of<EngineLock>) { baton_.begin_run(); }
    // The function keeps running, and its thread no longer leads. The caller then takes the lead, waits, or asks.
    void hand_over() REQUIRES(lock_of<EngineLock>) { baton_.hand_over(); }
    void hand_over_to_follower() REQUIRES(lock_of<EngineLock>) { wakes_.tell(baton_.hand_over_to_follower()); }
    void hand_over_to_waiting() REQUIRES(lock_of<EngineLock>) { wakes_.tell(baton_.hand_over_to_waiting()); }
    void hand_over_to_anybody() REQUIRES(lock_of<EngineLock>) {
        has_followers() ? hand_over_to_follower() : hand_over_to_waiting();
    }
    // This thread has handed the lead over and does not wait for it.
    void leave_to_others() REQUIRES(lock_of<EngineLock>) { wakes_.tell(baton_.leave_to_others()); }
    [[nodiscard]] bool has_followers() const REQUIRES(lock_of<EngineLock>) { return baton_.has_followers(); }

    // ---- the current state
    [[nodiscard]] bool is_led() const REQUIRES(lock_of<EngineLock>) { return baton_.is_led(); }
    [[nodiscard]] bool is_free() const REQUIRES(lock_of<EngineLock>) { return baton_.is_free(false); }
    void begin_wait() REQUIRES(lock_of<EngineLock>) { baton_.begin_wait(); }

    // ---- called by the thread that changes what others wait for
    // Work has arrived: ends the leader's check for signals, and its sleep.
    void wake() REQUIRES(lock_of<EngineLock>) { wakes_.wake(baton_.has_sleeping()); }
    // Threads that wait check again whether their wait is over.
    void tell_waiting() REQUIRES(lock_of<EngineLock>) {
        const Baton::Tell tell = baton_.tell_change();
        wakes_.tell(tell);
        if (!tell.waiting) wakes_.tell_looking();  // a thread that polls does not count as one that waits
    }
    // A frame begins to wait for room: the leader checks for room at once again, however many checks have failed before.
    void expect_room() REQUIRES(lock_of<EngineLock>) {
        idling_.expect_room();
        wake();
    }
    // Drops links of a peer that has ended, which the next leader would check.
    void forget_links() REQUIRES(lock_of<EngineLock>) {
        if (spare_awaited_) spare_awaited_->clear();
    }
    // The node's links end.
    void drop_awaited() REQUIRES(lock_of<EngineLock>) { spare_awaited_.reset(); }

private:
    friend struct EngineView;  // tests/node/engine_view.hpp

    void keep_watch(Lock& lock) REQUIRES(lock_of<EngineLock>);
    void take_over() REQUIRES(lock_of<EngineLock>);
    void keep_awaited(Turn& turn) REQUIRES(lock_of<EngineLock>) {
        if (turn.awaited) spare_awaited_ = std::move(turn.awaited);
    }
    [[nodiscard]] TimePoint next_look(const Deadline& deadline) const REQUIRES(lock_of<EngineLock>);
    void watch_waiting(Lookout::Seen& seen) REQUIRES(lock_of<EngineLock>);

    Duties& duties_;
    fabric::Fabric* fabric_ = nullptr;
    unsigned threads_ = 0;

    EngineLock mutex_;
    Baton baton_ GUARDED_BY(lock_of<EngineLock>);
    bool stopping_ GUARDED_BY(lock_of<EngineLock>) = false;
    Wakes wakes_;
    Idling idling_{duties_, mutex_, baton_, wakes_};
    // The last leader's; its links end before their fabric does.
    std::unique_ptr<AwaitedSignals> spare_awaited_ GUARDED_BY(lock_of<EngineLock>);
};

// Inlined: each call that is waited for has a turn. Of those that Baton::take() may name there is only the sleeper.
[[gnu::always_inline]] inline void Lead::take(Turn& turn) {
    const Baton::Tell whom = baton_.take(turn.baton);
    if (whom.sleeper) [[unlikely]] {
        fabric_->end_sleep();
        wakes_.tell(whom);
    }
    turn.awaited = std::move(spare_awaited_);
    turn.in_vain_since.reset();
}

[[gnu::always_inline]] inline void Lead::give(Turn& turn) {
    keep_awaited(turn);
    wakes_.tell(baton_.give(turn.baton));
}

template <typename Waiter>
void Lead::wait(Turn& turn, Deadline deadline, Waiter& waiter, bool untold) {
    baton_.begin_wait();
    bool watches = false;
    Lookout::Seen seen;
    while (!waiter.is_over()) {
        if (waiter.wants_change()) waiter.change(turn);
        const bool quiet = turn.baton.quiet;
        if (baton_.is_free(quiet)) {
            if (std::exchange(watches, false)) wakes_.tell(baton_.end_watch_waiting());
            take(turn);
            untold = false;
            while (!lost(turn) && !waiter.is_over() && !waiter.wants_change()) step(turn, deadline);
            if (!lost(turn)) give(turn);
            turn.drop_awaited();
            continue;
        }
        wakes_.tell(baton_.await(quiet));
        untold = false;
        watches = threads_ > 1 && baton_.begin_watch_waiting(watches);
        if (watches && baton_.leader_sleeps(/*for_long=*/true))
            (void)wakes_.await_change_or_leader(turn.lock, deadline);
        else
            (void)wakes_.await_change(turn.lock, watches ? next_look(deadline) : deadline);
        wakes_.tell(baton_.end_await(quiet));
        if (watches) watch_waiting(seen);
    }
    if (watches) wakes_.tell(baton_.end_watch_waiting());
    // The wait may have been over at once: then the thread has not waited at all, and no thread has been woken to take the free lead.
    if (untold) wakes_.tell(baton_.leave_to_others());
    wakes_.tell(baton_.end_wait());
}

// How often a thread that ends a node checks whether it is done.
inline constexpr auto kLookBriefly = std::chrono::milliseconds(1);

template <typename Done>
void Lead::wait_briefly(Lock& lock, TimePoint until, const Done& done) {
    while (!done() && Clock::now() < until) {
        wake();
        (void)wakes_.await_change(lock, Clock::now() + kLookBriefly);
    }
}

}  // namespace rove
