#include "end_signals.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "node/control/socket_file.hpp"
#include "rove/error.hpp"

namespace rove::tools {
namespace {

// The signal that came; 0: none before that time. A process that was stopped and goes on gets EINTR here.
int next_signal(const sigset_t& signals, std::chrono::steady_clock::time_point until) {
    using std::chrono::nanoseconds;
    for (;;) {
        const auto left =
            std::max<nanoseconds>(nanoseconds(0), until - std::chrono::steady_clock::now()) / nanoseconds(1);
        const timespec patience{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
        const int signal = sigtimedwait(&signals, nullptr, &patience);
        if (signal > 0) return signal;
        if (errno != EINTR) return 0;
    }
}

}  // namespace

struct EndSignals::State {
    std::mutex mutex;
    std::condition_variable changed;
    bool serving = false;
    std::optional<int> first;
};

EndSignals::EndSignals(std::chrono::seconds limit) : state_(std::make_shared<State>()) {
    sigset_t ends;
    sigemptyset(&ends);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, signal);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    const auto watch = [ends, limit, state = state_] {
        int signal = 0;
        sigwait(&ends, &signal);
        {
            const std::lock_guard lock(state->mutex);
            if (!state->serving) {
                std::fprintf(stderr, "rove: %s: the node ends before it has started\n", strsignal(signal));
                control::exit_without_socket_files(0);
            }
            state->first = signal;
        }
        state->changed.notify_all();
        const int again = next_signal(ends, std::chrono::steady_clock::now() + limit);
        control::exit_without_socket_files(again > 0 ? 128 + again : 0);
    };
    try {
        std::thread(watch).detach();
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::overloaded, std::string("no thread can be had to wait for signals (") + error.what() +
                                               "); is there a limit of processes?");
    }
}

void EndSignals::serving() {
    const std::lock_guard lock(state_->mutex);
    state_->serving = true;
}

std::optional<int> EndSignals::wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(state_->mutex);
    (void)state_->changed.wait_for(lock, time, [this] { return state_->first.has_value(); });
    return state_->first;
}

}  // namespace rove::tools
