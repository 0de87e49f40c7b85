// OwnThreads: the node's own threads, which lead it and run functions while no thread of the program waits on it.
//
// A thread in which a function waits quietly takes replies only, and begins no calls; but the function may wait for a call that arrives
// here. So another thread is made when a function first waits quietly, and the function counts as replaced until it returns. The number of
// threads that run functions therefore stays the same, as far as the bounds below and the machine allow.
//
// Threads: under the engine's lock, except count(), is_mine() and rest_mine().
//
// Invariants: the address of a One is constant, and none is removed once its thread has started. A thread with `quiet_runs` > 0 is counted once
// in QuietRuns. live() counts the threads that have neither ended nor been kept (keep_mine).
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "lead/lead.hpp"
#include "lead/quiet.hpp"

namespace rove {

struct Run;

// Waits that run nothing on top of them because they hold up others beneath (stacked_wait.hpp): for each of them another thread is made,
// too. Further waits keep running functions on top of them: no call is refused because of this bound.
inline constexpr unsigned kUnnestedWaitsMax = 16;

// Threads that a function wanted to end (pthread_exit) and that have been replaced. Further ones are not replaced, like the threads of
// functions that never return.
inline constexpr unsigned kKeptThreadsMax = 64;

class OwnThreads {
public:
    using Lock = Lead::Lock;
    struct One {
        explicit One(const OwnThreads* its) : of(its) {}
        const OwnThreads* of;
        std::thread thread{};
        // Functions on it that have waited quietly: while there are some, another thread runs functions in its place.
        unsigned quiet_runs = 0;
        const PeerState* quiet_for = nullptr;  // the peer in whose share it counts
        bool ended = false;
        bool is_left = false;                  // the node has ended without joining it
        std::atomic<bool> is_at_rest = false;  // set by rest_mine()
    };

    // `name`: the node's name, for messages.
    OwnThreads(Lead& lead, std::function<std::string()> name) : lead_(lead), name_(std::move(name)) {}

    // Starts `count` threads that run functions and, if that is more than one, another that runs none: it takes replies and parts, ends calls
    // whose time is over, and leaves the calls in their mailboxes to the next thread that returns.
    [[nodiscard]] Status start(unsigned count) REQUIRES(lock_of<EngineLock>);
    // Makes another thread, which calls `serves` under the lock. overloaded: no memory, or no thread.
    [[nodiscard]] Status add(void (*serves)(void* argument, Lock& lock, One& self), void* argument)
        REQUIRES(lock_of<EngineLock>);

    // The number of threads that run functions, without replacements: constant after the start.
    [[nodiscard]] unsigned count() const { return count_; }
    // The number of threads that have not ended.
    [[nodiscard]] unsigned live() const REQUIRES(lock_of<EngineLock>) { return live_; }
    // The number of threads that were ever made.
    [[nodiscard]] std::size_t made() const REQUIRES(lock_of<EngineLock>) { return threads_.size(); }
    // Whether the calling thread is one of them.
    [[nodiscard]] bool is_mine() const { return mine_ != nullptr && mine_->of == this; }

    // Makes threads until there are as many as needed, and `more`. False: one cannot be made, and the log says why. They live until the
    // node ends.
    [[nodiscard]] bool make_enough(unsigned more = 0) REQUIRES(lock_of<EngineLock>);
    // Called before a function waits quietly. False: too many functions do, and no other thread is made. Threads that were made are kept
    // for the next function that waits so. With one thread no functions run side by side.
    [[nodiscard]] bool replace(Run& run) REQUIRES(lock_of<EngineLock>);
    void take_back(Run& run) REQUIRES(lock_of<EngineLock>);
    // Called before a wait that holds up others beneath it stops running functions on top of it: another thread is made for the calls that
    // arrive, because all of the node's threads may be in functions. False: too many waits do so already, and this one continues as before.
    [[nodiscard]] bool stop_nesting() REQUIRES(lock_of<EngineLock>);
    void nest_again(unsigned waits = 1) REQUIRES(lock_of<EngineLock>) { unnested_waits_ -= waits; }
    // Runs that read their own payloads: for each of them another thread is made.
    [[nodiscard]] unsigned gatherings() const REQUIRES(lock_of<EngineLock>) { return gatherings_; }
    void begin_gathering() REQUIRES(lock_of<EngineLock>) { ++gatherings_; }
    void end_gathering() REQUIRES(lock_of<EngineLock>) { --gatherings_; }
    // The calling thread, one of them, stays in its function for ever: another one takes its place. overloaded: none does.
    [[nodiscard]] Status keep_mine() REQUIRES(lock_of<EngineLock>);
    // The calling thread, one of these, which is kept, uses nothing of the node from now on.
    static void rest_mine() { mine_->is_at_rest.store(true, std::memory_order_release); }

    [[nodiscard]] const QuietRuns& quiet() const REQUIRES(lock_of<EngineLock>) { return quiet_runs_; }
    // At the node's end: moves the threads that have ended to `ended`, to be joined without the lock, and abandons the others. True: some of
    // these are in functions that may use what the node has.
    [[nodiscard]] bool part_with_all(std::vector<std::thread>& ended) REQUIRES(lock_of<EngineLock>);

private:
    [[nodiscard]] tl::unexpected<Error> no_thread(std::string_view why) const;

    Lead& lead_;
    const std::function<std::string()> name_;
    std::deque<One> threads_ GUARDED_BY(lock_of<EngineLock>);
    unsigned count_ = 0;
    unsigned live_ GUARDED_BY(lock_of<EngineLock>) = 0;
    unsigned kept_ GUARDED_BY(lock_of<EngineLock>) = 0;  // threads that a function wanted to end
    QuietRuns quiet_runs_ GUARDED_BY(lock_of<EngineLock>){count_};
    // Waits that run nothing on top of them, so that those beneath can end (stacked_wait.hpp).
    unsigned unnested_waits_ GUARDED_BY(lock_of<EngineLock>) = 0;
    unsigned gatherings_ GUARDED_BY(lock_of<EngineLock>) = 0;

    static constinit thread_local One* mine_ [[gnu::tls_model("initial-exec")]];  // null: a thread of the program's
};

}  // namespace rove
