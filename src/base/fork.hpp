// Surviving fork(). The child has the memory of this process, and only the thread that called fork(). A lock that another thread
// held then is never released there, and shared kernel objects (sockets, mapped memory) still belong to the parent.
//
// Threads: every function may be called from any thread. Invariant: a process's generation never changes, and is higher than its parent's.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.hpp"

namespace rove {

// How many times this process, or one that it descends from, was forked since librove was loaded. An object that recorded another number
// was made by another process. Cost: one relaxed load.
extern std::atomic<std::uint32_t> forks_before;
[[nodiscard]] inline std::uint32_t process_generation() noexcept {
    return forks_before.load(std::memory_order_relaxed);
}

// The process in which an object was made.
//
// Threads: any.
class MakingProcess {
public:
    // Whether this process is a fork of it: what the object points to in other processes, and in the kernel, is the parent's. One relaxed
    // load.
    [[nodiscard]] bool is_past() const noexcept { return generation_ != process_generation(); }

private:
    const std::uint32_t generation_ = process_generation();
};

// Ends the child of a function that has forked and returned in the child as well, where nothing exists to return to; prints a message on
// stderr. Called by the thread that forked; uses no lock that another thread of the parent may have held.
[[noreturn]] void end_child_of(const char* what);

// Holds the lock across every fork() from now on, so that in the child it is free and its data are consistent. For process-wide tables that
// a child continues to use. Preconditions: the mutex is never destroyed; no thread holds two of these at once.
void hold_across_forks(Mutex& mutex);

// A scope in which fork() waits, in every thread that calls it. For calls into libraries that take a lock of their own: in a child that is
// forked during such a call that lock would stay taken for ever. Precondition: the thread is in no other such scope, and does not fork.
class NoForkMeanwhile {
public:
    NoForkMeanwhile();
    ~NoForkMeanwhile();
    NoForkMeanwhile(const NoForkMeanwhile&) = delete;
    NoForkMeanwhile& operator=(const NoForkMeanwhile&) = delete;
};

}  // namespace rove
