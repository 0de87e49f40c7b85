#include "end_signals.hpp"

#include <fmt/format.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "control/socket_file.hpp"
#include "rove/error.hpp"

namespace rove::tools {
namespace {

// The handler's state; one for the process, as handlers are. A semaphore, because shipped code may close any descriptor.
sem_t come;
std::atomic<int> last{0};
pid_t this_process = 0;

// A handler and not a signal mask: programs that functions start would inherit the mask, and only SIGKILL could end them.
void pass_on(int number) {
    const int before = errno;
    if (getpid() == this_process) {
        last.store(number, std::memory_order_relaxed);
        sem_post(&come);
    } else {  // in a child of a function that forked
        (void)signal(number, SIG_DFL);
        (void)raise(number);
    }
    errno = before;
}

bool hears_hangups = true;  // not where nohup(1) began this process

void handle(int number) {
    struct sigaction action{};
    action.sa_handler = &pass_on;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
}

// Set again if a function has changed them: these signals are the node's.
void handle_ends() {
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
        struct sigaction now{};
        sigaction(number, nullptr, &now);
        if (now.sa_handler != &pass_on && (number != SIGHUP || hears_hangups)) handle(number);
    }
}

void begin_to_handle_ends() {
    sem_init(&come, 0, 0);
    this_process = getpid();
    struct sigaction hangups{};
    sigaction(SIGHUP, nullptr, &hangups);
    hears_hangups = hangups.sa_handler != SIG_IGN;
    handle_ends();
}

int next_signal() {
    while (sem_wait(&come) != 0) continue;  // EINTR
    return last.load(std::memory_order_relaxed);
}

// 0: none came in that time.
int next_signal_within(std::chrono::seconds time) {
    timespec until{};
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += time.count();
    while (sem_clockwait(&come, CLOCK_MONOTONIC, &until) != 0)
        if (errno == ETIMEDOUT) return 0;
    return last.load(std::memory_order_relaxed);
}

}  // namespace

struct EndSignals::State {
    Mutex mutex;
    std::condition_variable_any changed;
    bool serving GUARDED_BY(mutex) = false;
    std::optional<int> first GUARDED_BY(mutex);
};

EndSignals::EndSignals(std::chrono::seconds limit) : state_(std::make_shared<State>()) {
    begin_to_handle_ends();
    const auto watch = [limit, state = state_] {
        const int signal = next_signal();
        {
            const MutexLock lock(state->mutex);
            if (!state->serving) {
                std::fprintf(stderr, "rove: %s: the node ends before it has started\n", strsignal(signal));
                control::exit_without_socket_files(0);
            }
            state->first = signal;
        }
        state->changed.notify_all();
        const int again = next_signal_within(limit);
        control::exit_without_socket_files(again > 0 ? 128 + again : 0);
    };
    try {
        std::thread(watch).detach();
    } catch (const std::system_error& error) {
        throw Error(
            ErrorCode::overloaded,
            fmt::format("no thread can be had to wait for signals ({}); is there a limit of processes?", error.what()));
    }
}

void EndSignals::serving() {
    const MutexLock lock(state_->mutex);
    state_->serving = true;
}

std::optional<int> EndSignals::wait_for(std::chrono::milliseconds time) {
    handle_ends();
    const TimePoint until = Clock::now() + time;
    const MutexLock lock(state_->mutex);
    while (!state_->first && Clock::now() < until) (void)state_->changed.wait_until(state_->mutex, until);
    return state_->first;
}

}  // namespace rove::tools
