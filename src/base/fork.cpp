#include "base/fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace rove {

std::atomic<std::uint32_t> forks_before{0};

namespace {

// The largest number of process-wide tables: there are five. The child of a fork makes another one if its parent was making one.
constexpr std::size_t kHeldMax = 64;
std::array<std::atomic<Mutex*>, kHeldMax> held;
std::atomic<std::size_t> held_count{0};
// Held across a fork, and while the table is changed, so that exactly those locks are unlocked after a fork that were locked before.
constinit Mutex forking;

// One handler takes the locks, and another one releases them.
template <typename Work>
NO_THREAD_SAFETY_ANALYSIS void with_each(const Work& work) {
    for (std::size_t i = 0; i < kHeldMax; ++i)
        if (Mutex* mutex = held[i].load(std::memory_order_acquire)) work(*mutex);
}

// Registered once, when the library is loaded, because handlers cannot be removed.
[[maybe_unused]] const int handlers = pthread_atfork(
    []() NO_THREAD_SAFETY_ANALYSIS {
        forking.lock();
        with_each([](Mutex& mutex) NO_THREAD_SAFETY_ANALYSIS { mutex.lock(); });
    },
    []() NO_THREAD_SAFETY_ANALYSIS {
        with_each([](Mutex& mutex) NO_THREAD_SAFETY_ANALYSIS { mutex.unlock(); });
        forking.unlock();
    },
    []() NO_THREAD_SAFETY_ANALYSIS {
        forks_before.fetch_add(1, std::memory_order_relaxed);
        with_each([](Mutex& mutex) NO_THREAD_SAFETY_ANALYSIS { mutex.unlock(); });
        forking.unlock();
    });

}  // namespace

void hold_across_forks(Mutex& mutex) {
    const MutexLock lock(forking);
    const std::size_t place = held_count.fetch_add(1);
    if (place >= kHeldMax) {
        std::fputs("rove: too many locks are held across forks; raise kHeldMax\n", stderr);
        std::abort();
    }
    held[place].store(&mutex, std::memory_order_release);
}

// The compiler's checks do not treat this as a lock: code that calls into a library uses no data that it guards.
NO_THREAD_SAFETY_ANALYSIS NoForkMeanwhile::NoForkMeanwhile() {
    forking.lock();
}

NO_THREAD_SAFETY_ANALYSIS NoForkMeanwhile::~NoForkMeanwhile() {
    forking.unlock();
}

// Uses only the kernel and stderr, because another thread may have held the log's lock.
void end_child_of(const char* what) {
    std::fprintf(stderr, "rove: %s has forked and returned in the child, which ends here; end it with _exit()\n", what);
    _exit(EXIT_FAILURE);
}

}  // namespace rove
