// Baton: which thread leads an engine. It records the state of the lead, and does none of the leader's work: each function below is one step
// in which the lead may change hands, and returns which threads to wake.
//
// Threads. It has no lock of its own: every function runs under the engine's. A thread waits under that lock in one of two places of `Wakes`,
// `changed_` (threads that wait for a call: "waiting") or `followers_` (the node's own threads: "followers"), or it sleeps as the leader.
// So a step is everything that a thread does between two moments at which it releases the lock, and tests/node/baton_test.cpp runs all
// orders of the steps of a few threads.
//
// Invariants:
//   - At most one thread holds the current turn; `lost` is true for all others. A thread that has released the lock asks `lost`
//     before it continues as leader.
//   - An offer is for a follower: while `offered_` is set, a follower has been woken and will take the lead, and no thread leads.
//   - If no thread leads and nothing is offered, every thread that waits has been woken, or a follower keeps watch and takes the lead
//     if none of them does.
//   - While a function runs, the leader is watched: by a follower; without followers, by a thread that waits; without both, by the
//     standby thread, which runs no functions itself and is therefore always available (in nodes that run functions side by side).
//   - The follower on watch rests only while the leader sleeps for long, and the standby thread only while another thread can lead. The step
//     that ends either of these wakes the thread that rests.
#pragma once

#include <cstdint>
#include <utility>

namespace rove {

class Baton {
public:
    // Which threads the caller wakes, now, under the lock. A thread that is woken checks itself whether it is to lead.
    struct [[nodiscard]] Tell {
        bool waiting = false;   // all threads that wait
        bool follower = false;  // one of the followers
        bool sleeper = false;   // the thread that sleeps as the leader, or did until it lost the lead
        bool watch = false;     // the follower on watch, which rests: it is to look as often as usual
        bool standby = false;   // the standby thread, which rests: no other thread can lead
    };
    // One thread's turn at the lead.
    struct Turn {
        bool own;            // a thread of the node's own
        bool quiet = false;  // it takes replies only, and runs nothing
        // It was offered the lead for a function that runs long: it leads for at least one step.
        bool for_long = false;
        std::uint64_t term = 0;     // the number of this turn; if the node's is another, another thread leads
        std::uint64_t runs = 0;     // functions begun before this turn
        std::uint64_t changes = 0;  // changes reported before its thread last checked whether its wait is over
    };

    // ---- the leader
    // Precondition: the lead is free for this kind of thread.
    Tell take(Turn& turn) {
        const Tell tell{.sleeper = asleep_};  // the sleeper wakes and sees that it has lost the lead
        turn.term = ++term_;
        turn.runs = runs_;
        leading_ = true;
        yields_ = turn.own || turn.quiet;
        quiet_leads_ = turn.quiet;
        idle_ = asleep_ = offered_ = false;
        return tell;
    }
    Tell give(const Turn& turn) {
        ++term_;
        leading_ = false;
        // A thread that waits for call after call soon leads again; if it does not, the follower on watch takes the lead. If functions have
        // run in this turn, other nodes call this one and must not wait for that: the lead is offered at once.
        const bool offers = followers_ > 0 && (!watched_ || runs_ != turn.runs);
        offered_ = offered_ || offers;
        return {.waiting = waiting_ > 0, .follower = offers};
    }
    // Called by a thread that waits, before a function that is known to run long. Precondition: there is a follower.
    Tell give_for_long(const Turn& turn) {
        Tell tell = give(turn);
        offered_for_long_ = offered_ = tell.follower = true;
        return tell;
    }
    [[nodiscard]] bool lost(const Turn& turn) const { return lost(turn.term); }
    [[nodiscard]] bool lost(std::uint64_t term) const { return term_ != term; }
    // Something that threads wait for has changed. The thread that changed it need not lead: a function that lost the lead may answer a
    // call that the leader itself waits for.
    Tell tell_change() {
        ++changes_;
        return {.waiting = waiting_ > 0, .sleeper = sleeping_ > 0};
    }
    // Called when this thread has just checked whether its wait is over. Until tell_change() it may sleep: after that another thread may
    // have ended the wait while this one had released the lock.
    void begin_step(Turn& turn) const { turn.changes = changes_; }
    [[nodiscard]] bool may_sleep(const Turn& turn) const { return turn.changes == changes_; }
    // Called before the leader releases the lock with nothing to do: it spins, yields or makes way.
    void pause() { idle_ = true; }
    // `for_long`: nothing has happened for some time, and nothing is due soon.
    void fall_asleep(bool for_long) {
        idle_ = asleep_ = true;
        asleep_for_long_ = for_long;
        ++sleeping_;
    }
    // Called before resume(). Other threads may be asleep, too: the leader, and threads that have lost the lead and not woken yet. The wake
    // that this thread has consumed may have been meant for them.
    Tell wake_up() { return {.sleeper = --sleeping_ > 0, .watch = std::exchange(watch_rests_, false)}; }
    // Called after pause() or fall_asleep(), with the lock again. False: the lead was lost.
    [[nodiscard]] bool resume(const Turn& turn) {
        if (lost(turn)) return false;
        idle_ = asleep_ = false;
        return true;
    }

    // ---- functions that the leader runs
    void begin_run() { ++runs_; }
    // The function keeps running, and its thread no longer leads. The caller then takes the lead, waits for it, or asks.
    void hand_over() {
        ++term_;
        leading_ = false;
    }
    // The same for a function that is known to run long. Precondition: there is a follower.
    Tell hand_over_to_follower() {
        hand_over();
        return offer();
    }
    struct [[nodiscard]] Asked {
        bool leads = false;  // the lead is free for this thread: take it for one step of work
        Tell tell{};
    };
    // For a thread that asks repeatedly whether something has happened, and does not wait.
    Asked ask() {
        if (offered_) return {};
        // A leader that takes replies only leaves the lead to this thread: the standby thread, or one that waits quietly, leads where all others
        // are in functions, and nobody else would begin the calls that arrive.
        if (leading_) return {.leads = idle_ && quiet_leads_};
        if (followers_ > 0) return {.tell = offer()};
        return {.leads = true};
    }

    // The thread has handed the lead over and does not wait for it: any other thread may take it.
    Tell leave_to_others() {
        if (leading_ || offered_) return {};
        if (followers_ > 0) return offer();
        return {.waiting = waiting_ > 0};
    }

    // ---- threads that wait for a call
    void begin_wait() { ++waits_; }
    // An offered lead is reserved for a follower, which has been woken. A quiet thread leads only if no other can.
    [[nodiscard]] bool is_free(bool quiet) const {
        if (quiet) return !leading_ && !offered_ && followers_ == 0 && waiting_ == quiet_;
        return leading_ ? idle_ && yields_ : !offered_;
    }
    // Called before a thread waits because the lead is not free for it. A quiet thread leaves the lead to those that take calls as well.
    Tell await(bool quiet) {
        const Tell tell = leave_to_others();
        ++waiting_;
        if (quiet) ++quiet_;
        return tell;
    }
    Tell end_await(bool quiet) {
        if (quiet) --quiet_;
        --waiting_;
        return {.standby = !has_others() && std::exchange(standby_rests_, false)};
    }

    // The thread's wait is over, or its time is. It may have been woken because the lead is free, and quiet threads have left the lead to
    // it.
    Tell end_wait() const {
        return {.waiting = !leading_ && !offered_ && followers_ == 0 && quiet_ > 0 && waiting_ == quiet_};
    }

    // ---- the node's own threads: one leads whenever no thread that waits for a call does, one keeps watch, the others wait
    [[nodiscard]] bool is_free_for_own() const { return !leading_ || (idle_ && yields_ && quiet_leads_); }
    // Called before take(): whether this thread is needed for a function that runs long.
    [[nodiscard]] bool accept_for_long() { return std::exchange(offered_for_long_, false); }
    // A thread that waits for a call leads in preference to this one, but leaves functions that run long to it.
    [[nodiscard]] bool take_step(Turn& turn) const {
        return !lost(turn) && (waiting_ == quiet_ || std::exchange(turn.for_long, false));
    }
    // It has given the lead, and no waiting thread will take it.
    [[nodiscard]] bool leads_again() const { return waiting_ == quiet_; }
    // True: the thread keeps watch, until it sees something to do (Lookout). False: it waits until it is woken.
    [[nodiscard]] bool follow() {
        ++followers_;
        return !std::exchange(watched_, true);
    }
    // Called by the follower on watch before it waits. True: the leader sleeps for long, so the thread rests until it is told that the sleeper is
    // awake, which is also woken when another thread takes the lead. Without that it would wake 100 times a second for nothing; where the
    // leader sleeps for a short time, the call that wakes it would pay for two threads that wake.
    [[nodiscard]] bool rest_watch() {
        watch_rests_ = leader_sleeps(/*for_long=*/true);
        return watch_rests_;
    }
    Tell end_follow(bool watched) {
        Tell tell;
        if (watched) {
            watched_ = false;
            watch_rests_ = false;
            tell.follower = followers_ > 1;  // another one keeps watch
        }
        --followers_;
        tell.waiting = followers_ == 0 && waiting_ > 0;  // one of them keeps watch
        tell.standby = !has_others() && std::exchange(standby_rests_, false);
        return tell;
    }
    // The thread ends.
    Tell end_own() {
        offered_ = false;  // it may have been offered to this one
        return {.waiting = waiting_ > 0};
    }

    // ---- the watch without followers: all of the node's own threads are in functions, or it has none
    // Called by a thread that waits, before each wait, with the result of the previous call. True: it keeps watch, and checks repeatedly.
    // Only one such thread does.
    [[nodiscard]] bool begin_watch_waiting(bool watched) {
        if (followers_ == 0) return watched || !std::exchange(waiter_watches_, true);
        if (watched) waiter_watches_ = false;
        return false;
    }
    // The thread leads, or waits no longer: another one that waits keeps watch. Called while it is not counted among those that wait.
    Tell end_watch_waiting() {
        waiter_watches_ = false;
        return {.waiting = followers_ == 0 && waiting_ > 0};
    }
    // Any waiting thread that may, takes the lead.
    Tell hand_over_to_waiting() {
        hand_over();
        return {.waiting = true};
    }
    // Called by the standby thread, which is neither a follower nor waits: whether any other thread can lead.
    [[nodiscard]] bool has_others() const { return followers_ > 0 || waiting_ > 0; }
    // Called by the standby thread before it waits. True: others can lead, so it rests until it is told that none can.
    [[nodiscard]] bool rest_standby() {
        standby_rests_ = has_others();
        return standby_rests_;
    }

    // ---- the current state
    [[nodiscard]] bool is_led() const { return leading_; }
    [[nodiscard]] bool leader_sleeps(bool for_long = false) const {
        return leading_ && asleep_ && (asleep_for_long_ || !for_long);
    }
    [[nodiscard]] bool has_sleeping() const { return sleeping_ > 0; }
    [[nodiscard]] bool has_followers() const { return followers_ > 0; }

private:
    friend class Lookout;
    friend struct BatonView;   // tests/node/baton_test.cpp
    friend struct EngineView;  // tests/node/engine_view.hpp

    Tell offer() {
        offered_ = true;
        return {.follower = true};
    }

    bool leading_ = false;
    bool yields_ = false;       // the leader leaves the lead to a thread that waits: an own one, or a quiet one
    bool quiet_leads_ = false;  // the leader takes replies only
    bool idle_ = false;         // the leader has released the lock and has nothing to do: it spins, yields or sleeps
    bool asleep_ = false;       // it sleeps …
    bool asleep_for_long_ = false;   // … and nobody expects it to wake soon
    bool offered_ = false;           // no thread leads; a follower has been woken to take the lead
    bool offered_for_long_ = false;  // the offer is for a function that runs long
    bool watched_ = false;           // a follower keeps watch
    bool watch_rests_ = false;       // … and rests until the leader is awake
    bool standby_rests_ = false;     // the standby thread waits until no other thread can lead
    bool waiter_watches_ = false;    // a thread that waits keeps watch
    int sleeping_ = 0;               // threads asleep: the leader, and some that were woken because they lost the lead
    int waiting_ = 0;                // threads that wait and do not lead …
    int quiet_ = 0;                  // … those of them that wait for replies only
    int followers_ = 0;              // threads of the node's own that wait for the lead
    std::uint64_t term_ = 0;         // counts the turns at the lead
    std::uint64_t runs_ = 0;         // functions begun, ever
    std::uint64_t waits_ = 0;        // calls waited for, ever
    std::uint64_t changes_ = 0;      // changes of what threads wait for, ever
};

}  // namespace rove
