// Lead: which thread works for a node, how it waits when nothing arrives, and how the work changes hands.
//
// One thread at a time *leads*: it does the node's work (`Duties::work`) turn after turn. With nothing to do it looks at the mailboxes' next
// signals: it spins, then yields, then sleeps. All other threads are *followers* (the node's own, which wait for the lead) or *wait* for
// something of theirs to happen, and lead meanwhile. The lead changes hands
//   - to a thread that waits, at once where the leader is a thread of the node's own that has nothing to do: a reply is then seen by the
//     thread that wants it;
//   - to a follower, where a function runs long: before it is run when it is known for that, else as soon as the thread that keeps watch
//     sees it. The function keeps running in its thread.
// Baton has the state of this, in steps that a test runs in all orders. Lead is what threads do between the steps. Idling is how a leader
// waits that has nothing to do; Wakes is how threads are woken.
//
// Threads. Everything runs under the engine's lock, which this class has, unless it says otherwise. The lock is released while a leader
// looks, sleeps or makes way, and while its duties run functions. A thread that has released it asks lost() before it goes on as leader.
//
// Invariants: those of Baton; what Baton's steps return is passed to Wakes before the lock is released. Each thread that took the lead either
// gives it or has lost it before it waits for something else. A node that is stopping stays so.
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
    // Before any thread leads. `threads`: for functions that run long (NodeOptions::threads).
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
    // To a follower, because the next function runs long. Precondition: there is one.
    void give_for_long(Turn& turn) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool lost(const Turn& turn) const REQUIRES(lock_of<EngineLock>) { return baton_.lost(turn.baton); }
    [[nodiscard]] bool lost(std::uint64_t term) const REQUIRES(lock_of<EngineLock>) { return baton_.lost(term); }
    // One turn of work; where there is none, waits for some until the deadline. Returns what Duties::work does.
    unsigned step(Turn& turn, Deadline deadline) REQUIRES(lock_of<EngineLock>);
    // Releases the lock for those that want it now.
    void make_way(Turn& turn) REQUIRES(lock_of<EngineLock>);

    // ---- threads that wait for something to happen on the node
    // Leads, or waits for whoever does, until waiter.is_over(). `waiter` says besides whether the way of waiting is to change
    // (wants_change()), and changes it (change(turn)); `untold`: this thread has just handed over the lead, and nobody knows.
    template <typename Waiter>
    void wait(Turn& turn, Deadline deadline, Waiter& waiter, bool untold) REQUIRES(lock_of<EngineLock>);
    // For one that asks whether something has happened, and does not wait: where nobody else leads, it is to take the lead for one turn.
    [[nodiscard]] bool asks() REQUIRES(lock_of<EngineLock>);
    // Until nobody leads: another thread does the work meanwhile. False: it has done something, the time is over, or interrupt() was called.
    [[nodiscard]] bool wait_while_led(Lock& lock, Deadline deadline) REQUIRES(lock_of<EngineLock>);
    // For phases of an end: until it is done or the time is over, waking whoever leads once a millisecond.
    template <typename Done>
    void wait_briefly(Lock& lock, TimePoint until, const Done& done) REQUIRES(lock_of<EngineLock>);

    // ---- the node's own threads, from beginning to end
    // Leads whenever nobody who waits does, keeps watch, or waits for its turn. Until stop().
    void serve(Lock& lock) REQUIRES(lock_of<EngineLock>);
    // Runs nothing, and leads only while all others are in functions. Until stop().
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

    // ---- what is so now
    [[nodiscard]] bool is_led() const REQUIRES(lock_of<EngineLock>) { return baton_.is_led(); }
    [[nodiscard]] bool is_free() const REQUIRES(lock_of<EngineLock>) { return baton_.is_free(false); }
    void begin_wait() REQUIRES(lock_of<EngineLock>) { baton_.begin_wait(); }

    // ---- whoever changes what others wait for says so
    // Ends a leader's look, and its sleep: there is work.
    void wake() REQUIRES(lock_of<EngineLock>) { wakes_.wake(baton_.has_sleeping()); }
    // Threads that wait look again whether it has happened.
    void tell_waiting() REQUIRES(lock_of<EngineLock>) { wakes_.tell(baton_.tell_change()); }
    // A frame begins to wait for room: looks begin at once, as if none had been in vain.
    void expect_room() REQUIRES(lock_of<EngineLock>) {
        idling_.expect_room();
        wake();
    }
    // Links of a peer that has gone, which the next leader would look at.
    void forget_links() REQUIRES(lock_of<EngineLock>) { spare_awaited_.links.clear(); }
    // The node's links end.
    void drop_awaited() REQUIRES(lock_of<EngineLock>) { spare_awaited_ = {}; }

private:
    friend struct EngineView;  // tests/node/engine_view.hpp

    void keep_watch(Lock& lock) REQUIRES(lock_of<EngineLock>);
    void take_over() REQUIRES(lock_of<EngineLock>);
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
    AwaitedSignals spare_awaited_
        GUARDED_BY(lock_of<EngineLock>);  // of whoever led last; its links end before their fabric does
};

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
            turn.awaited.clear();
            continue;
        }
        wakes_.tell(baton_.await(quiet));
        untold = false;
        watches = threads_ > 1 && baton_.begin_watch_waiting(watches);
        (void)wakes_.await_change(turn.lock, watches ? next_look(deadline) : deadline);
        baton_.end_await(quiet);
        if (watches) watch_waiting(seen);
    }
    if (watches) wakes_.tell(baton_.end_watch_waiting());
    // It may be over between two looks: then it has not waited at all, and nobody knows that the lead is free.
    if (untold) wakes_.tell(baton_.leave_to_others());
    wakes_.tell(baton_.end_wait());
}

// How often a thread that ends a node looks whether it is done.
inline constexpr auto kLookBriefly = std::chrono::milliseconds(1);

template <typename Done>
void Lead::wait_briefly(Lock& lock, TimePoint until, const Done& done) {
    while (!done() && Clock::now() < until) {
        wake();
        (void)wakes_.await_change(lock, Clock::now() + kLookBriefly);
    }
}

}  // namespace rove
