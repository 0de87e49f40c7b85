// How an engine ends, and what it says of functions that may never do so.
#include <algorithm>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

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
// After this long in one callback another thread calls the remaining ones, until there are kTellersMax such threads.
constexpr auto kTellFor = std::chrono::milliseconds(50);
constexpr unsigned kTellersMax = 8;

}  // namespace

// A function that waits for a call runs others on top of itself. One of those that then takes long, and waits for no call itself, may be
// waiting for a lock that the function beneath it holds: neither will ever end. The control thread looks, because all others may be in
// such functions; with one thread the leader itself is.
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
        turn.drop_awaited();
    }
}

// One engine's end. The thread that ends an engine runs none of its functions where the engine has threads for that, so that none can keep it
// for ever.
class EngineEnd {
public:
    explicit EngineEnd(Engine& engine) : engine_(engine) {}

    // False: functions have not returned.
    [[nodiscard]] static bool of_all(std::deque<EngineEnd>& ends) {
        const TimePoint begun = Clock::now();
        for (const Phase phase :
             {&EngineEnd::send_posts, &EngineEnd::await_posts, &EngineEnd::begin, &EngineEnd::drain,
              &EngineEnd::stop_leading, &EngineEnd::await_functions_that_wait, &EngineEnd::end_calls,
              &EngineEnd::have_last_ends_told, &EngineEnd::await_last_functions, &EngineEnd::leave_functions,
              &EngineEnd::join_threads})
            for (EngineEnd& each : ends) (each.*phase)(begun);
        return std::ranges::none_of(ends, &EngineEnd::functions_left_);
    }

private:
    // In this order. Each is given when the end began.
    using Phase = void (EngineEnd::*)(TimePoint begun);
    void send_posts(TimePoint begun) EXCLUDES(lock_of<EngineLock>);
    void await_posts(TimePoint begun) EXCLUDES(lock_of<EngineLock>);
    void begin(TimePoint begun) EXCLUDES(lock_of<EngineLock>);
    void drain(TimePoint begun) EXCLUDES(lock_of<EngineLock>);
    void stop_leading(TimePoint begun) EXCLUDES(lock_of<EngineLock>);
    void await_functions_that_wait(TimePoint begun) EXCLUDES(lock_of<EngineLock>);
    void end_calls(TimePoint begun) EXCLUDES(lock_of<EngineLock>);
    void have_last_ends_told(TimePoint begun) EXCLUDES(lock_of<EngineLock>);
    void await_last_functions(TimePoint begun) EXCLUDES(lock_of<EngineLock>);
    void leave_functions(TimePoint begun) EXCLUDES(lock_of<EngineLock>);
    void join_threads(TimePoint begun) EXCLUDES(lock_of<EngineLock>);
    void await_functions(TimePoint until) EXCLUDES(lock_of<EngineLock>);

    // Until when posts are awaited, and what has arrived is served.
    [[nodiscard]] TimePoint drained_by(TimePoint begun) const {
        return begun + std::min<Clock::duration>(kDrainFor, engine_.options_.grace / 5);
    }

    Engine& engine_;
    std::vector<CallId> pings_{};
    std::size_t unsent_pings_ = 0;
    std::vector<std::thread> ended_{};
    bool functions_left_ = false;
};

// While it exists, this thread runs no function where it waits: one that blocks would keep the end for ever.
class RunsNothing {
public:
    RunsNothing() { ThreadRuns::forbid_nesting(1); }
    ~RunsNothing() { ThreadRuns::forbid_nesting(-1); }
    RunsNothing(const RunsNothing&) = delete;
};

// When a peer sees that this node has gone, it drops the posts that it has not begun, and a post has no answer. So a ping is sent after them:
// its answer says that all of them have begun. A peer that takes nothing has its share of the time, and not that of the others.
void EngineEnd::send_posts(TimePoint begun) try {
    const RunsNothing waits;
    const std::vector<std::shared_ptr<PeerState>> peers = engine_.peers_.with_posts();
    for (std::size_t i = 0; i < peers.size(); ++i) {
        const TimePoint now = Clock::now();
        const TimePoint until = now + (std::max(now, drained_by(begun)) - now) / (peers.size() - i);
        if (const auto ping = engine_.caller_.ping(peers[i], {}, /*wants_reply=*/true, until))
            pings_.push_back(*ping);
        else if (until > now && ping.error().code() != ErrorCode::disconnected)
            ++unsent_pings_;  // without any time nothing is known of its posts
    }
} catch (const std::bad_alloc&) {
    log().warn("{}: no memory to wait for its posts; peers may not have begun all of them", engine_.name_());
}

void EngineEnd::await_posts(TimePoint begun) {
    std::size_t late = unsent_pings_;
    const RunsNothing waits;
    for (const CallId ping : pings_) {
        bool has_begun_them = engine_.own_calls_.wait(ping, drained_by(begun));
        if (has_begun_them) {  // or its own time was over first
            const Result<Bytes> answer = engine_.own_calls_.result(ping);
            has_begun_them = answer || answer.error().code() != ErrorCode::timed_out;
        }
        late += has_begun_them ? 0 : 1;
        engine_.own_calls_.forget(ping);
    }
    if (late > 0) log().warn("{}: {} peers have not begun all of its posts, which are lost", engine_.name_(), late);
}

void EngineEnd::begin(TimePoint /*begun*/) {
    const Hold hold(engine_.lock());
    engine_.caller_.close();
}

// Runs and answers the calls that have arrived, as far as that takes little time. This thread's own functions are not awaited.
void EngineEnd::drain(TimePoint begun) {
    Hold hold(engine_.lock());
    const unsigned mine = engine_.runner_.depth();
    const TimePoint until = drained_by(begun);
    if (engine_.own_threads_.count() > 0) {
        const std::uint64_t quiet = engine_.lead_.idling().steps_in_vain() + 3;
        engine_.lead_.wait_briefly(hold.lock(), until, [&]() REQUIRES(lock_of<EngineLock>) {
            return engine_.runner_.busy() <= mine && engine_.lead_.idling().steps_in_vain() >= quiet;
        });
    } else if (engine_.fabric_ && !engine_.lead_.is_led() && mine == 0) {
        Lead::Turn turn{.lock = hold.lock(), .baton = {.own = true}};
        engine_.lead_.take(turn);
        for (unsigned nothing = 0; !engine_.lead_.lost(turn) && nothing < 100 && Clock::now() < until;) {
            engine_.turns_.progress_soon();
            nothing = engine_.turns_.work(turn) > 0 ? 0 : nothing + 1;
        }
        if (!engine_.lead_.lost(turn)) engine_.lead_.give(turn);
    }
}

// Threads end when they have nothing to run.
void EngineEnd::stop_leading(TimePoint /*begun*/) {
    const Hold hold(engine_.lock());
    engine_.lead_.stop();
}

void EngineEnd::await_functions(TimePoint until) {
    Hold hold(engine_.lock());
    const unsigned mine = engine_.runner_.depth();
    engine_.lead_.wait_briefly(hold.lock(), until, [&]() REQUIRES(lock_of<EngineLock>) {
        return engine_.runner_.busy() <= mine && engine_.own_threads_.live() <= (mine > 0 ? 1U : 0U);
    });
}

// Functions that wait continue to wait for most of the grace …
void EngineEnd::await_functions_that_wait(TimePoint begun) {
    await_functions(begun + engine_.options_.grace * 4 / 5);
}

// … and then end with an error.
void EngineEnd::end_calls(TimePoint /*begun*/) {
    const Hold hold(engine_.lock());
    engine_.runner_.end_waits();
    engine_.stopped_.store(true, std::memory_order_relaxed);
    engine_.own_calls_.close(
        Error(ErrorCode::cancelled, engine_.name_() + " was shut down while the call was in flight"));
    engine_.lead_.tell_waiting();
    engine_.lead_.wake();
}

// Makes the thread that reports them, and another one if a callback does not return.
void EngineEnd::have_last_ends_told(TimePoint /*begun*/) {
    Hold hold(engine_.lock());
    const auto tell = [](void* engine, HeldLock& held, OwnThreads::One& self) REQUIRES(lock_of<EngineLock>) {
        static_cast<Engine*>(engine)->tell_of_last_ends(held, self);
    };
    for (unsigned i = 0; i < kTellersMax && engine_.own_calls_.has_ends_to_tell(); ++i) {
        if (const Status told = engine_.own_threads_.add(tell, &engine_); !told) {
            log().error("callbacks are not run for calls that have ended: {}", told.error().message());
            return;
        }
        engine_.lead_.wait_briefly(hold.lock(), Clock::now() + kTellFor, [&]() REQUIRES(lock_of<EngineLock>) {
            return !engine_.own_calls_.has_ends_to_tell();
        });
    }
}

void EngineEnd::await_last_functions(TimePoint begun) {
    await_functions(std::max(begun + engine_.options_.grace, Clock::now() + kTellFor));
}

// Functions that still run are left to themselves, with all that they use.
void EngineEnd::leave_functions(TimePoint /*begun*/) {
    const Hold hold(engine_.lock());
    if (engine_.runner_.leading() != nullptr && engine_.own_threads_.live() > 0) {
        engine_.runner_.set_aside(Clock::now());
        engine_.lead_.hand_over();
    }
    for (const Run& run : engine_.runner_.long_runs()) {
        if (ThreadRuns::is_in(run)) continue;
        log().error("{}: {} has not returned within {} ms; the node ends without it", engine_.name_(),
                    run.function != nullptr ? run.function->name : "a callback", engine_.options_.grace.count());
        if (run.nested_in() != nullptr && !run.warned && !run.waits)
            log().error("{}: it ran on top of {}, which waited for a call in the same thread. {}", engine_.name_(),
                        run.nested_in()->name, kDeadlockRemedy);
    }
    functions_left_ = engine_.functions_left_ = engine_.own_threads_.part_with_all(ended_);
}

void EngineEnd::join_threads(TimePoint /*begun*/) {
    for (std::thread& each : std::exchange(ended_, {})) each.join();
}

bool Engine::end() {
    std::deque<EngineEnd> ends;
    ends.emplace_back(*this);
    return EngineEnd::of_all(ends);
}

bool Engine::end_all(std::span<const std::unique_ptr<Engine>> engines) {
    std::deque<EngineEnd> ends;
    for (const auto& each : engines)
        if (!each->is_stopped()) ends.emplace_back(*each);
    return EngineEnd::of_all(ends);
}

void Engine::drop_links() {
    const Hold hold(lock());
    peers_.forget_meetings();
    lead_.tell_waiting();  // who waits for room finds that there is no link any more
    if (!functions_left_) link_ends_.drop_buried();
    lead_.drop_awaited();
}

}  // namespace rove
