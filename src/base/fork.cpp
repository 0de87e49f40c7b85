#include "base/fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace rove {

std::atomic<std::uint32_t> forks_before{0};

namespace {

// Tables of the process: there are five. A child of a fork makes another one where its parent was making it.
constexpr std::size_t kHeldMax = 64;
std::array<std::atomic<Mutex*>, kHeldMax> held;
std::atomic<std::size_t> held_count{0};
// Held across a fork. Who adds to the table takes it, too, so that what is unlocked after a fork is what was locked before.
constinit Mutex forking;

// Locks that it takes in one handler are let go of in another.
template <typename Work>
NO_THREAD_SAFETY_ANALYSIS void with_each(const Work& work) {
    for (std::size_t i = 0; i < kHeldMax; ++i)
        if (Mutex* mutex = held[i].load(std::memory_order_acquire)) work(*mutex);
}

// Once, when the library is loaded: handlers cannot be taken back.
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

// To the compiler it is no lock: whoever calls into a library uses nothing that it guards.
NO_THREAD_SAFETY_ANALYSIS NoForkMeanwhile::NoForkMeanwhile() {
    forking.lock();
}

NO_THREAD_SAFETY_ANALYSIS NoForkMeanwhile::~NoForkMeanwhile() {
    forking.unlock();
}

// Nothing is used here but the kernel's and stderr's: a lock of the log may have been another thread's.
void end_child_of(const char* what) {
    std::fprintf(stderr, "rove: %s has forked and returned in the child, which ends here; end it with _exit()\n", what);
    _exit(EXIT_FAILURE);
}

}  // namespace rove
