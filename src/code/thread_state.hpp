// ThreadState: attributes of a thread that a constructor may change, and that later constructors, and the threads that they start, would
// inherit.
//
// Threads: each object reads and restores the calling thread's state. Invariant: an object never changes once it is made.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <clocale>
#include <csignal>

namespace rove::code {

class ThreadState {
public:
    // Records the state of this thread.
    ThreadState();
    // Restores that state. Sets only what has changed, because a node without privileges may not be allowed to set it. Signals that were blocked
    // since then and are pending are discarded without a handler. False: the kernel refused a setting (scheduling, priority, processors, timer
    // slack), or signals keep arriving, and the thread still blocks them.
    [[nodiscard]] bool restore() const;

private:
    [[nodiscard]] bool take_pending(const ThreadState& now) const;

    sigset_t blocked_;
    stack_t signal_stack_{};
    const locale_t locale_;
    std::array<char, 16> name_{};  // the longest name, and a zero
    const int nice_;
    const unsigned long slack_;  // ns
    // This thread's settings from the kernel itself: pthread_getschedparam() returns what was set through the C library.
    const int policy_;
    sched_param priority_{};
    cpu_set_t processors_{};
    const bool has_processors_;
};

}  // namespace rove::code
