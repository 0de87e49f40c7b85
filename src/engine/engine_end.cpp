// How an engine ends, and what it says of functions that may never do so.
#include "base/log.hpp"
#include "engine/engine.hpp"

namespace rove {
namespace {

// A function that runs this long on top of a waiting one is reported. Shorter than usual time limits, so that the log has the warning before
// the first call times out.
constexpr auto kDeadlockAfter = std::chrono::seconds(2);
constexpr const char* kDeadlockRemedy =
    "If both take one lock, it is a deadlock and neither will end: send the outer one as rove::no_nesting(f), or wait "
    "under a "
    "rove::NoNesting";
// For how long a node that ends serves what has arrived.
constexpr auto kDrainFor = std::chrono::seconds(1);
// After this long in one callback another thread calls the remaining ones; at most so many threads are made.
constexpr auto kTellFor = std::chrono::milliseconds(50);
constexpr unsigned kTellersMax = 8;

}  // namespace

// A function that waits for a call runs others on top of itself. One of those that then takes long, and waits for no call itself, may be
// waiting for a lock that the function beneath it holds: neither will ever end. The control thread looks, because all others may be in
// such functions; with one thread the leader itself is.
void Engine::each_second() {
    const Hold hold(lock());
    runner_.code().let_go();
    warn_of_deadlocks();
}

void Engine::warn_of_deadlocks() {
    const TimePoint now = Clock::now();
    const auto look_at = [&](Run& run) {
        if (run.nested_in() == nullptr || run.warned || run.function == nullptr) return;
        if (run.waits) return run.noticed.reset();  // for a call, and for no lock
        if (!run.noticed) run.noticed = now;
        if (now < *run.noticed + kDeadlockAfter) return;
        run.warned = true;
        log().warn("{}: {} has run for {} s on top of {}, which waits for a call in the same thread. {}", name_(),
                   run.function->name, std::chrono::duration_cast<std::chrono::seconds>(kDeadlockAfter).count(),
                   run.nested_in()->name, kDeadlockRemedy);
    };
    for (Run& run : runner_.long_runs()) look_at(run);
    if (runner_.leading() != nullptr) look_at(*runner_.leading());
}

// Callbacks and coroutines that wait for calls are notified before the node is destroyed, by a thread that is made for this: a thread that led
// leaves as soon as it sees the end, there may be no other, and a notified callback may never return. So this thread takes the lead from
// any other, which can be in a function or a callback only after that has had all its time.
void Engine::tell_of_last_ends(HeldLock& lock, const OwnThreads::One& self) {
    while (own_calls_.has_ends_to_tell() && !self.is_left) {
        if (runner_.leading() != nullptr) runner_.set_aside(Clock::now());
        lead_.hand_over();
        Lead::Turn turn{.lock = lock, .baton = {.own = true}};
        lead_.take(turn);
        (void)own_calls_.tell_of_ends(turn);
        if (!lead_.lost(turn)) lead_.give(turn);
        turn.watch.clear();
    }
}

// Makes that thread, and another one if a callback does not return.
void Engine::have_last_ends_told(HeldLock& lock) {
    const auto tell = [](void* engine, HeldLock& held, OwnThreads::One& self) REQUIRES(lock_of<EngineLock>) {
        static_cast<Engine*>(engine)->tell_of_last_ends(held, self);
    };
    for (unsigned i = 0; i < kTellersMax && own_calls_.has_ends_to_tell(); ++i) {
        if (const Status told = own_threads_.add(tell, this); !told) {
            log().error("callbacks are not told that their calls have ended: {}", told.error().message());
            return;
        }
        lead_.wait_briefly(lock, Clock::now() + kTellFor,
                           [&]() REQUIRES(lock_of<EngineLock>) { return !own_calls_.has_ends_to_tell(); });
    }
}

// Runs and answers the calls that have arrived, as far as that takes little time. This thread is in `mine` functions, which are not awaited.
void Engine::drain(HeldLock& lock, unsigned mine, TimePoint until) {
    if (own_threads_.count() > 0) {
        const std::uint64_t quiet = lead_.idling().steps_in_vain() + 3;
        lead_.wait_briefly(lock, until, [&]() REQUIRES(lock_of<EngineLock>) {
            return runner_.busy() <= mine && lead_.idling().steps_in_vain() >= quiet;
        });
    } else if (fabric_ && !lead_.is_led() && mine == 0) {
        Lead::Turn turn{.lock = lock, .baton = {.own = true}};
        lead_.take(turn);
        for (unsigned nothing = 0; !lead_.lost(turn) && nothing < 100 && Clock::now() < until;) {
            turns_.progress_soon();
            nothing = turns_.work(turn) > 0 ? 0 : nothing + 1;
        }
        if (!lead_.lost(turn)) lead_.give(turn);
    }
}

// Functions that still run are left to themselves, with all that they use.
void Engine::leave_functions() {
    if (runner_.leading() != nullptr && own_threads_.live() > 0) {
        runner_.set_aside(Clock::now());
        lead_.hand_over();
    }
    for (const Run& run : runner_.long_runs()) {
        if (ThreadRuns::is_in(run)) continue;
        log().error("{}: {} has not returned within {} ms; the node ends without it", name_(),
                    run.function != nullptr ? run.function->name : "a callback", options_.grace.count());
        if (run.nested_in() != nullptr && !run.warned)
            log().error("{}: it ran on top of {}, which waited for a call in the same thread. {}", name_(),
                        run.nested_in()->name, kDeadlockRemedy);
    }
}

// The thread that ends an engine runs none of its functions where the engine has threads for that, so that none can keep it for ever.
bool Engine::end() {
    const TimePoint begun = Clock::now();
    const unsigned mine = runner_.depth();  // functions that this thread is in
    std::vector<std::thread> ended;
    {
        Hold hold(lock());
        caller_.close();
        drain(hold.lock(), mine, begun + std::min<Clock::duration>(kDrainFor, options_.grace / 5));
        // Threads end when they have nothing to run. Functions that wait go on waiting for most of the grace …
        lead_.stop();
        const auto nobody_runs = [&]() REQUIRES(lock_of<EngineLock>) {
            return runner_.busy() <= mine && own_threads_.live() <= (mine > 0 ? 1U : 0U);
        };
        lead_.wait_briefly(hold.lock(), begun + options_.grace * 4 / 5, nobody_runs);
        // … and then end with an error.
        runner_.end_waits();
        stopped_.store(true, std::memory_order_relaxed);
        own_calls_.close(Error(ErrorCode::cancelled, name_() + " was shut down while the call was in flight"));
        lead_.tell_waiting();
        lead_.wake();
        have_last_ends_told(hold.lock());
        lead_.wait_briefly(hold.lock(), std::max(begun + options_.grace, Clock::now() + kTellFor), nobody_runs);
        leave_functions();
        functions_left_ = own_threads_.part_with_all(ended);
    }
    for (std::thread& each : ended) each.join();
    const Hold hold(lock());
    return !functions_left_;
}

void Engine::drop_links() {
    const Hold hold(lock());
    peers_.forget_meetings();
    lead_.tell_waiting();  // who waits for room finds that there is no link any more
    if (!functions_left_) link_ends_.drop_buried();
    lead_.drop_watch();
}

}  // namespace rove
