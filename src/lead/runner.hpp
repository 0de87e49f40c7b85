// Runner: functions and callbacks while they run. It knows which functions each thread is in, lets a function that runs long continue beside
// the leader, counts the places for those, and makes threads wait for something on their node (wait_until): such a thread leads, or waits for
// the thread that does.
//
// Threads: under the engine's lock, unless stated otherwise. The lock is released while code that is not the node's runs (`outside`).
//
// Invariants: at most one function runs in the leader's thread (`leading`). A function that was set aside is in `long_runs` until it returns,
// and keeps its frame and its code until then. A run refers to the one that waits beneath it in its thread (Run::beneath).
//
// A thread has one stack of runs and waits, whichever engines they are on. A thread that waits on one engine in a function of another gives up
// the other's lead, and returns to its run after the wait (leave, come_back). It holds one engine's lock at a time.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/float_environment.hpp"
#include "base/fork.hpp"
#include "base/stack.hpp"
#include "code/cache.hpp"
#include "lead/code_place.hpp"
#include "lead/lead.hpp"
#include "lead/own_threads.hpp"
#include "lead/run.hpp"
#include "lead/stacked_wait.hpp"
#include "lead/thread_runs.hpp"

namespace rove {

class Engine;

// How long a thread waits on one engine until it looks at the calls of others that have no thread but this one.
inline constexpr auto kServeOthersEvery = std::chrono::milliseconds(1);

class Runner {
public:
    using Lock = HeldLock;

    // The parts of the node that this one uses. They outlive it.
    struct Beside {
        Engine& engine;  // the engine whose functions these are
        const NodeOptions& options;
        Lead& lead;
        Lead::Duties& duties;  // the leader's duties
        OwnThreads& own_threads;
        const std::unique_ptr<code::CodeCache>& cache;  // made when the node starts
    };
    explicit Runner(Beside beside)
        : engine_(beside.engine),
          options_(beside.options),
          lead_(beside.lead),
          duties_(beside.duties),
          own_threads_(beside.own_threads),
          code_(beside.cache) {}

    [[nodiscard]] Engine& engine() const { return engine_; }  // the engine whose functions these are
    // The code of these functions.
    [[nodiscard]] CodePlace& code() { return code_; }

    // ---- one run, by the thread that leads
    // Called before anything of it is read: from here on it may be set aside.
    void begin(Run& run, Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);
    struct Once {
        bool operator()() const { return false; }
    };
    // Runs `code`, without the lock, and ends the run. The lead may have been lost when it returns: Run::handed_over. next(), under the lock, says
    // whether a run of the same function follows, which is then run in the same way and shares `run`: to whoever keeps watch each is a run of its
    // own. It is not asked after one that was set aside.
    template <typename Code, typename Next = Once>
    void outside(Run& run, Lead::Turn& turn, const Code& code, const Next& next = {}) REQUIRES(lock_of<EngineLock>);
    // Every call of code that is not the node's own is made through this, within `code`.
    template <typename Code>
    static void call_out(const Run& run, const Code& code);

    // ---- runs beside the leader
    // The function that the leader runs; null: it is in none.
    [[nodiscard]] Run* leading() const REQUIRES(lock_of<EngineLock>) { return leading_; }
    // Functions that have not returned, callbacks included.
    [[nodiscard]] unsigned busy() const REQUIRES(lock_of<EngineLock>) { return busy_; }
    [[nodiscard]] const LongRuns& long_runs() const REQUIRES(lock_of<EngineLock>) { return long_run_list_; }
    // Called before its thread loses the lead: the frame and the code of the function that the leader runs are kept for it. `since`: when
    // it is considered to have begun.
    void set_aside(TimePoint since) noexcept REQUIRES(lock_of<EngineLock>);
    // The function that the leader runs is long, as this thread has seen; the leader's thread loses the lead.
    void take_away() noexcept REQUIRES(lock_of<EngineLock>);
    // Treats the function that this thread is in as one that is known to run long.
    void hand_over_here() REQUIRES(lock_of<EngineLock>);
    // It never returns: the node's end no longer waits for it.
    void give_up(Run& run) REQUIRES(lock_of<EngineLock>);

    // ---- places: at most NodeOptions::threads functions run long at the same time
    // A run that reads its payload has a thread made for it, and takes no place.
    [[nodiscard]] unsigned places_taken() const REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool has_no_place() const REQUIRES(lock_of<EngineLock>) {
        return long_run_count_ >= options_.threads;
    }
    // Whether a call must wait: too many functions run long already, or too many have waited quietly.
    [[nodiscard]] bool must_wait_for_thread(const code::Function& function, const PeerState* from) const
        REQUIRES(lock_of<EngineLock>);

    // ---- this thread; without the lock, unless stated otherwise
    // Whether the innermost function or callback that this thread is in is this engine's.
    [[nodiscard]] bool is_in_mine() const { return ThreadRuns::top_.runner == this; }
    // Whether this thread is in the function that the leader runs.
    [[nodiscard]] bool runs_as_leader() const REQUIRES(lock_of<EngineLock>) {
        return is_in_mine() && !lead_.lost(ThreadRuns::top_.term) && leading_ != nullptr;
    }
    // The number of functions of this engine that this thread is in.
    [[nodiscard]] unsigned depth() const;

    // ---- waiting
    struct Manner {               // how a thread waits
        bool quiet = false;       // it takes replies and parts, and runs no function on top of the one that it is in
        bool holds_back = false;  // as quiet, but it leads even if others could: only for a short time
        LargeQueue::Place* large = nullptr;  // a place that it keeps: others pass it while a function runs on top
    };
    // Leads, or waits for a leader, until it is done or late, or the node is at its end. Returns done().
    template <typename Done>
    bool wait_until(Lock& lock, Deadline deadline, const Done& done, Manner manner) REQUIRES(lock_of<EngineLock>);
    template <typename Done>
    bool wait_until(Lock& lock, Deadline deadline, const Done& done) REQUIRES(lock_of<EngineLock>) {
        return wait_until(lock, deadline, done, {});
    }
    // Leads for one check, and until something was done or the time is over (not over 0: for that check alone). Returns how much was done.
    unsigned poll(Lock& lock, std::chrono::milliseconds wait) REQUIRES(lock_of<EngineLock>);
    // For a thread that asks whether its call has ended and does not wait. Outside of functions nothing need be done for it: the node's
    // threads serve. A function that asks repeatedly must not keep the lead between its questions.
    void look_once(Lock& lock) REQUIRES(lock_of<EngineLock>);
    // Called before a thread waits in a function or in a callback of this engine: it gives up the lead, and can lead again while it waits. The
    // function is treated as if it ran long. True: no thread has been woken, and the caller ensures that some thread leads.
    bool step_aside() REQUIRES(lock_of<EngineLock>);
    // The node is at its end: all waits end.
    void end_waits() REQUIRES(lock_of<EngineLock>) { ending_ = true; }
    [[nodiscard]] bool is_ending() const REQUIRES(lock_of<EngineLock>) { return ending_; }

private:
    // What a run has given up while its thread waits on another engine.
    struct Absence {
        bool of_place;
        TimePoint since;
    };
    // The other engine's runner, if this thread is in a function of another engine; null: it is in none, or in one of this engine. A
    // function that has forked is the parent's, and so are the locks of its engine.
    [[nodiscard]] Runner* elsewhere() const {
        Runner* const in = ThreadRuns::top_.runner;
        return in != nullptr && in != this && !in->process_.is_past() ? in : nullptr;
    }
    // For the run of this engine that this thread is in, before it waits on another engine and after. `other`: that engine's lock, which is
    // released in between.
    [[nodiscard]] Absence leave(Lock& other) REQUIRES(lock_of<EngineLock>);
    void come_back(const Absence& from, Lock& other) REQUIRES(lock_of<EngineLock>);
    // The next engine, other than this one, that this thread is in a function of and whose only thread it is. Null: there is no other. `in`:
    // where to begin; it moves outwards.
    [[nodiscard]] Runner* next_unserved(ThreadRuns::Within& in) const;
    // Looks once at the calls of all of these, because the thread may wait for one of them.
    void serve_beneath(Lock& lock, const Manner& manner) REQUIRES(lock_of<EngineLock>);

    // Waits in this engine, for a thread that is in a function of this one, or of none, or has left its function's engine.
    template <typename Done>
    bool wait_here(Lock& lock, Deadline deadline, const Done& done, Manner manner) REQUIRES(lock_of<EngineLock>);
    template <typename GoesOn>
    unsigned lead(Lock& lock, Deadline deadline, const GoesOn& goes_on) REQUIRES(lock_of<EngineLock>);
    void end(Run& run) REQUIRES(lock_of<EngineLock>);
    void end_handed_over(Run& run) REQUIRES(lock_of<EngineLock>);
    void set_aside(Run& run) noexcept REQUIRES(lock_of<EngineLock>);
    void hand_over_at_once(Run& run) noexcept REQUIRES(lock_of<EngineLock>);
    void take_place(Run& run) REQUIRES(lock_of<EngineLock>);
    void give_place(Run& run) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool waits_where_places_are_rare(const code::Function& function) const REQUIRES(lock_of<EngineLock>);

    Engine& engine_;
    const MakingProcess process_;
    const NodeOptions& options_;
    Lead& lead_;
    Lead::Duties& duties_;
    OwnThreads& own_threads_;
    CodePlace code_;
    Run* leading_ GUARDED_BY(lock_of<EngineLock>) = nullptr;
    unsigned busy_ GUARDED_BY(lock_of<EngineLock>) = 0;
    // How many of these runs run beside the leader and do not wait for a call.
    unsigned long_run_count_ GUARDED_BY(lock_of<EngineLock>) = 0;
    LongRuns long_run_list_ GUARDED_BY(lock_of<EngineLock>);
    bool ending_ GUARDED_BY(lock_of<EngineLock>) = false;  // all waits end, because their time is over
};

// ---- the steps of every run, inlined; runner.cpp has the rare ones

[[gnu::always_inline]] inline void Runner::begin(Run& run, Lead::Turn& turn) {
    run.awaited = turn.awaited.get();
    run.on_own_thread = turn.baton.own;
    lead_.begin_run();
    ++busy_;
    leading_ = &run;
    if (ThreadRuns::top_.run != nullptr) {
        run.beneath = ThreadRuns::top_.run;
        run.beneath_of = ThreadRuns::top_.runner;
    }
    if (run.function != nullptr && run.function->pace.is_long()) hand_over_at_once(run);  // if another thread can lead
    if (turn.large_beneath == nullptr) return;
    turn.large_beneath->go_beneath();
    lead_.tell_waiting();  // the turn is beneath now, so later turns may pass it
}

template <typename Code, typename Next>
[[gnu::always_inline]] inline void Runner::outside(Run& run, Lead::Turn& turn, const Code& code, const Next& next) {
    const ThreadRuns::Top outer = std::exchange(ThreadRuns::top_, {this, turn.baton.term, &run});
    for (;;) {
        turn.lock.unlock();
        code();
        [[clang::always_inline]] turn.lock.lock();
        if (run.handed_over || !next()) break;
        lead_.begin_run();
        run.noticed.reset();
        run.payload_read.store(false, std::memory_order_relaxed);
    }
    ThreadRuns::top_ = outer;
    if (turn.large_beneath != nullptr) turn.large_beneath->come_up();
    end(run);
}

template <typename Code>
[[gnu::always_inline]] inline void Runner::call_out(const Run& run, const Code& code) {
    const StandardFloatEnvironment floats(run.on_own_thread);
    code();
}

[[gnu::always_inline]] inline void Runner::end(Run& run) {
    --busy_;
    if (run.handed_over) return end_handed_over(run);
    leading_ = nullptr;
    if (run.function == nullptr) return;
    run.function->pace.ended_at_once();
    if (run.function->waits_quietly.load(std::memory_order_relaxed))
        run.function->waits_quietly.store(false, std::memory_order_relaxed);  // not with these arguments
    if (run.entered)
        run.entered.reset();
    else
        code_.leave();
}

[[gnu::always_inline]] inline bool Runner::must_wait_for_thread(const code::Function& function,
                                                                const PeerState* from) const {
    if (own_threads_.count() < 2) return false;
    if (own_threads_.quiet().holds(function, from)) return true;
    return long_run_count_ >= options_.threads && waits_where_places_are_rare(function);
}

// ---- waiting

template <typename Done>
bool Runner::wait_until(Lock& lock, Deadline deadline, const Done& done, Manner manner) {
    if (done()) return true;
    const auto late = [&]()
                          REQUIRES(lock_of<EngineLock>) { return ending_ || (deadline && Clock::now() >= *deadline); };
    if (late()) {
        // One look may run functions.
        if (!ending_ && !manner.quiet && !manner.holds_back && manner.large == nullptr) look_once(lock);
        return done();
    }
    Runner* const other = elsewhere();
    ThreadRuns::Within from = ThreadRuns::innermost();
    const bool serves_others = next_unserved(from) != nullptr;
    if (other == nullptr && !serves_others) [[likely]]
        return wait_here(lock, deadline, done, manner);
    // The condition may have become false again (another thread has taken the room) when the thread is back in its run.
    while (!done() && !late()) {
        const TimePoint look = Clock::now() + kServeOthersEvery;
        const std::optional<Absence> absence = other != nullptr ? std::optional(other->leave(lock)) : std::nullopt;
        const bool is_done =
            wait_here(lock, serves_others && (!deadline || look < *deadline) ? look : deadline, done, manner);
        if (!is_done && serves_others) serve_beneath(lock, manner);
        if (absence) other->come_back(*absence, lock);
    }
    return done();
}

template <typename Done>
bool Runner::wait_here(Lock& lock, Deadline deadline, const Done& done, Manner manner) {
    bool untold = step_aside();
    const ThreadRuns::Top here = is_in_mine() ? ThreadRuns::top_ : ThreadRuns::Top{};
    bool quiet = manner.quiet || ThreadRuns::is_nesting_forbidden() ||
                 (own_threads_.count() > 1 && (ThreadRuns::is_deep() || has_less_stack_than(kStackReserveBytes)));
    bool run_waits = here.run != nullptr && here.run->handed_over;
    if (quiet && here.run != nullptr && !own_threads_.replace(*here.run)) {
        // Too many threads are replaced already. Other functions run on top of this one instead, unless its NoNesting forbids that:
        // then it keeps its thread, and its place among the functions that run long.
        quiet = ThreadRuns::is_nesting_forbidden();
        run_waits = run_waits && !quiet;
    }
    if (run_waits) give_place(*here.run);
    if (here.run != nullptr) here.run->waits = true;
    // The function's floating-point settings must not apply to the node's own code, which would trap where it rounds.
    std::optional<StandardFloatEnvironment> floats;
    if (ThreadRuns::is_in_any()) floats.emplace(/*on_own_thread=*/false);
    const TimePoint waits_since = here.run != nullptr ? Clock::now() : TimePoint{};
    ThreadRuns::nested_ += ThreadRuns::is_in_any() ? 1 : 0;
    Lead::Turn turn{.lock = lock,
                    .baton = {.own = false, .quiet = quiet},
                    .holds_back = manner.holds_back,
                    .large_beneath = manner.large};
    struct Waiter {
        Runner& runner;
        const Done& done;
        const Deadline& deadline;
        bool may_nest, is_done = false, unnested = false;
        StackedWait stacked{runner, *this};
        [[nodiscard]] bool operator()() const REQUIRES(lock_of<EngineLock>) {
            return done() || runner.ending_ || (deadline && Clock::now() >= *deadline);
        }
        [[nodiscard]] bool is_over() REQUIRES(lock_of<EngineLock>) {
            is_done = done();
            return is_done || runner.ending_ || (deadline && Clock::now() >= *deadline);
        }
        // This wait holds up a wait beneath it: nothing more is to run on top of it.
        [[nodiscard]] bool wants_change() { return may_nest && stacked.holds_up(); }
        void change(Lead::Turn& turn) REQUIRES(lock_of<EngineLock>) {
            turn.baton.quiet = unnested = runner.own_threads_.stop_nesting();
            may_nest = false;
        }
    } waiter{*this, done, deadline, !quiet && own_threads_.count() > 1};
    lead_.wait(turn, deadline, waiter, untold);
    if (waiter.unnested) own_threads_.nest_again();
    ThreadRuns::nested_ -= ThreadRuns::is_in_any() ? 1 : 0;
    if (run_waits) take_place(*here.run);
    if (here.run == nullptr) return waiter.is_done;
    here.run->waits = false;
    here.run->waited += Clock::now() - waits_since;
    return waiter.is_done;
}

}  // namespace rove
