#include "lead/engine_lock.hpp"

#include <sched.h>

#include <thread>

#include "base/clock.hpp"

namespace rove {

namespace {

constexpr unsigned kLooks = 100;
// A yield takes 0.3 us if no thread takes the core, so this is a millisecond or two.
constexpr unsigned kYields = 4000;
constexpr auto kNap = std::chrono::microseconds(50);
// How long a leader waits for others to take the lock. A thread that runs takes it within a microsecond; one that waits for its core has
// it after the yield that gives it the core.
constexpr auto kLetInFor = std::chrono::microseconds(200);
// The same after a thread got no core, until a thread has taken the lock: as long as a running thread needs.
constexpr auto kLetInAgainFor = std::chrono::microseconds(5);

}  // namespace

void EngineLock::wait() NO_THREAD_SAFETY_ANALYSIS {
    for (unsigned looks = 0;; ++looks) {
        if (!taken_.load(std::memory_order_relaxed) && try_lock()) return;
        if (looks < kLooks) continue;
        if (looks < kLooks + kYields)
            sched_yield();
        else
            std::this_thread::sleep_for(kNap);
    }
}

void EngineLock::lock_soon() NO_THREAD_SAFETY_ANALYSIS {
    wanting_.fetch_add(1, std::memory_order_relaxed);
    lock();
    wanting_.fetch_sub(1, std::memory_order_relaxed);
    had_.fetch_add(1, std::memory_order_relaxed);
}

void EngineLock::let_in() {
    const unsigned wanting = wanting_.load(std::memory_order_relaxed);
    if (wanting == 0) return;
    const unsigned before = had_.load(std::memory_order_relaxed);
    const bool was_in_vain = in_vain_at_.load(std::memory_order_relaxed) == before;
    const TimePoint until = Clock::now() + (was_in_vain ? kLetInAgainFor : kLetInFor);
    while (is_wanted() && had_.load(std::memory_order_relaxed) - before < wanting) {
        sched_yield();
        if (Clock::now() < until) continue;
        in_vain_at_.store(had_.load(std::memory_order_relaxed), std::memory_order_relaxed);
        return;
    }
}

}  // namespace rove
