// ThreadState: attributes of a thread that a constructor may change, and that later constructors, and the threads that they start, would
// inherit.
//
// Threads: each looks at, and restores, the thread that calls it.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <clocale>
#include <csignal>

namespace rove::code {

class ThreadState {
public:
    // As the thread is now.
    ThreadState();
    // Sets the thread back to that. Only what has changed is set, because a node without rights may not be allowed to set it. Signals that have
    // been blocked since then and wait for the thread are taken, and no handler runs for them. False: the kernel refused something (scheduling,
    // priority, processors, timer slack), or signals keep coming, and the thread still blocks them.
    [[nodiscard]] bool restore() const;

private:
    [[nodiscard]] bool take_pending(const ThreadState& now) const;

    sigset_t blocked_;
    stack_t signal_stack_{};
    const locale_t locale_;
    std::array<char, 16> name_{};  // the longest, and a zero
    const int nice_;
    const unsigned long slack_;  // ns
    // Of this thread alone, as the kernel has them: pthread_getschedparam() gives what C's library has been told.
    const int policy_;
    sched_param priority_{};
    cpu_set_t processors_{};
    const bool has_processors_;
};

}  // namespace rove::code
