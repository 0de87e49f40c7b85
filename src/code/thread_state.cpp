#include "code/thread_state.hpp"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace rove::code {
namespace {

// The number of pending signals that are discarded: more than a constructor leaves. If there are still more, another process keeps sending
// them.
constexpr int kPendingMax = 4096;

id_t self() {
    return static_cast<id_t>(gettid());
}

}  // namespace

ThreadState::ThreadState()
    : locale_(uselocale(nullptr)),
      nice_(getpriority(PRIO_PROCESS, self())),
      slack_(static_cast<unsigned long>(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0))),
      policy_(sched_getscheduler(0)),
      has_processors_(pthread_getaffinity_np(pthread_self(), sizeof processors_, &processors_) == 0) {
    sigemptyset(&blocked_);
    (void)pthread_sigmask(SIG_SETMASK, nullptr, &blocked_);
    (void)sigaltstack(nullptr, &signal_stack_);
    (void)pthread_getname_np(pthread_self(), name_.data(), name_.size());
    (void)sched_getparam(0, &priority_);
}

bool ThreadState::restore() const {
    const ThreadState now;
    bool restored = take_pending(now);
    if (restored) (void)pthread_sigmask(SIG_SETMASK, &blocked_, nullptr);
    (void)sigaltstack(&signal_stack_, nullptr);  // the present stack may be in code that is about to be released
    (void)uselocale(locale_);
    if (now.name_ != name_) (void)pthread_setname_np(pthread_self(), name_.data());
    if (now.slack_ != slack_) restored = prctl(PR_SET_TIMERSLACK, slack_, 0, 0, 0) == 0 && restored;
    if (now.policy_ != policy_ || now.priority_.sched_priority != priority_.sched_priority)
        restored = pthread_setschedparam(pthread_self(), policy_, &priority_) == 0 && restored;
    if (now.nice_ != nice_) restored = setpriority(PRIO_PROCESS, self(), nice_) == 0 && restored;
    if (has_processors_ && now.has_processors_ && CPU_EQUAL(&now.processors_, &processors_) == 0)
        restored = pthread_setaffinity_np(pthread_self(), sizeof processors_, &processors_) == 0 && restored;
    return restored;
}

// A signal that waits until it is no longer blocked would end the node, or reach the next code's handler. False: signals keep arriving.
bool ThreadState::take_pending(const ThreadState& now) const {
    sigset_t blocked_since;
    sigemptyset(&blocked_since);
    for (int each = 1; each < NSIG; ++each)
        if (sigismember(&now.blocked_, each) == 1 && sigismember(&blocked_, each) == 0) sigaddset(&blocked_since, each);
    const timespec at_once{};
    for (int left = kPendingMax; left > 0; --left)
        if (sigtimedwait(&blocked_since, nullptr, &at_once) < 0 && errno != EINTR) return true;
    return false;
}

}  // namespace rove::code
