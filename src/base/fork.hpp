// What fork() leaves of this process in its child: the memory, and no thread but the one that called it. A lock that another thread
// held then is never released there, and what the kernel shares (sockets, mapped memory) is still the parent's.
//
// Threads: every function may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.hpp"

namespace rove {

// How many times this process, or one that it descends from, was forked since librove was loaded. What remembers another number
// was made by another process. One relaxed load.
extern std::atomic<std::uint32_t> forks_before;
[[nodiscard]] inline std::uint32_t process_generation() noexcept {
    return forks_before.load(std::memory_order_relaxed);
}

// What was sent here has forked, and returned in the child too, where nothing is that it could return to: says so on stderr, and ends the
// child. From the thread that forked, which may hold nothing that another thread of the parent had.
[[noreturn]] void end_child_of(const char* what);

// Has a lock taken across every fork(), so that the child finds it free and what it guards whole. For tables of the whole process,
// which a child goes on with. The mutex is never destroyed. Precondition: no thread holds two of these at once.
void hold_across_forks(Mutex& mutex);

// While one lives, fork() waits in whichever thread calls it. For calls into libraries that take a lock of their own: a child
// born meanwhile finds that lock taken for ever. Precondition: the thread has no other one, and does not fork.
class NoForkMeanwhile {
public:
    NoForkMeanwhile();
    ~NoForkMeanwhile();
    NoForkMeanwhile(const NoForkMeanwhile&) = delete;
    NoForkMeanwhile& operator=(const NoForkMeanwhile&) = delete;
};

}  // namespace rove
