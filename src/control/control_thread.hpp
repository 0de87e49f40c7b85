// ControlThread: the thread of a node's control plane. Conversations (coroutines) take turns on it; other threads may wait for their results.
//
// Threads: what may be called from any thread says so; all else is called on this one, or while it does not run.
//
// Invariants: one conversation executes at a time, and gives way only where it waits (co_await), so what it sees between two waits is
// unchanged by others. After release_waiting() no thread is in run_and_wait(); after stop() nothing executes; after drop() no conversation
// is left.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"

namespace rove {
class PeerState;
}

namespace rove::control {

// Other threads give the control thread work through this while that exists. It outlives the control thread.
class Gate {
public:
    // Callable from any thread. False: the control thread accepts no more work, and `work` is dropped.
    template <typename Work>
    bool post(Work work) {
        const MutexLock lock(mutex_);
        if (io_ == nullptr) return false;
        asio::post(*io_, std::move(work));
        return true;
    }
    void open(asio::io_context& io) {
        const MutexLock lock(mutex_);
        io_ = &io;
    }
    void close() {
        const MutexLock lock(mutex_);
        io_ = nullptr;
    }

private:
    Mutex mutex_;
    asio::io_context* io_ GUARDED_BY(mutex_) = nullptr;
};

// The longest time from one turn of the control thread to the next one: how often a node looks for deadlocks.
inline constexpr auto kTurnMax = std::chrono::seconds(1);

class ControlThread {
public:
    using Connected = Result<std::shared_ptr<PeerState>>;

    explicit ControlThread(std::function<std::string()> name);  // `name`: the node's, for messages
    ControlThread(const ControlThread&) = delete;

    // `between` is called before each turn, and every kTurnMax if nothing happens. If it throws, it is called again after a pause. Throws if no
    // thread is available.
    void start(std::function<void()> between);
    [[nodiscard]] bool is_running() const { return thread_.joinable(); }
    [[nodiscard]] asio::io_context& io() { return *io_; }
    [[nodiscard]] const std::shared_ptr<Gate>& gate() const { return gate_; }

    // Callable from any thread while this one runs. A conversation for which memory runs out ends, with a line in the log, and gives back
    // what it had taken; the others continue.
    void spawn(asio::awaitable<void> conversation, const char* what);
    // Callable from any thread but this one: begins `work` and waits for its result. timed_out at the deadline, and the work continues;
    // cancelled once the node is ending.
    [[nodiscard]] Connected run_and_wait(asio::awaitable<Connected> work, std::optional<TimePoint> deadline);
    [[nodiscard]] asio::awaitable<void> pause(std::chrono::milliseconds time);

    // ---- the end, in this order, each called from another thread
    void release_waiting();                        // run_and_wait() is cancelled, and no thread is in it afterwards
    void stop(const std::function<void()>& last);  // `last` is the thread's last work
    void drop();                                   // conversations that have not ended are destroyed where they wait

private:
    // The result for which a thread waits.
    struct Awaited {
        std::optional<Connected> result GUARDED_BY(lock_of<ControlThread>);
    };

    const std::function<std::string()> name_;
    std::unique_ptr<asio::io_context> io_;
    std::optional<asio::executor_work_guard<asio::io_context::executor_type>> keep_;
    const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
    MutexOf<ControlThread> mutex_;
    std::condition_variable_any changed_;
    unsigned waiting_ GUARDED_BY(lock_of<ControlThread>) = 0;
    bool is_ending_ GUARDED_BY(lock_of<ControlThread>) = false;
    std::thread thread_;
};

}  // namespace rove::control
