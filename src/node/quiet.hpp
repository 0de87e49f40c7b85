// A node's own threads, how many of them are kept by functions that wait quietly (quiet.cpp), and which further ones are held back
// for it.
//
// Threads: under the node's lock.
#pragma once

#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "code/cache.hpp"

namespace rove {

// Functions that have waited quietly and not returned, on threads of the node's own: each has another thread made in its place. 64
// stacks of 8 MiB are half a GiB of addresses, of which a thread that serves uses some 100 KiB. Further ones of their kind wait in
// their mailboxes. A function that does it for the first time was begun as any other, and has its thread all the same: then there
// are as many more as functions begin at once (NodeOptions::threads and the serving ones).
inline constexpr unsigned kQuietRunsMax = 64;
// Those that wait in their mailboxes wait for as long as others of them end. Where none has begun or ended for so long, they may be
// waiting for what is behind them in the same mailbox: from then on they are refused.
inline constexpr auto kQuietHoldFor = std::chrono::seconds(10);

class NodeCore;

struct OwnThread {
    const NodeCore* of;
    std::thread thread{};
    unsigned quiet_runs = 0;  // functions on it that have waited quietly: while there are some it has another one in its place
    bool ended = false;
};

class QuietRuns {
public:
    [[nodiscard]] unsigned threads() const { return threads_; }  // that have another one in their place
    [[nodiscard]] bool is_full() const { return threads_ >= kQuietRunsMax; }
    void begin() {
        ++threads_;
        changed_ = Clock::now();
    }
    void end() {
        --threads_;
        changed_ = Clock::now();
    }

    // A call of this function stays in its mailbox.
    [[nodiscard]] bool holds(const code::Function& function) const {
        return is_full() && function.waits_quietly.load(std::memory_order_relaxed);
    }
    // It has been held back for long enough.
    [[nodiscard]] bool gives_up(const code::Function& function) const {
        return holds(function) && Clock::now() - changed_ >= kQuietHoldFor;
    }
    // When those that are held back are given up.
    [[nodiscard]] std::optional<TimePoint> due() const {
        const TimePoint until = changed_ + kQuietHoldFor;
        return is_full() && Clock::now() < until ? std::optional(until) : std::nullopt;
    }

private:
    unsigned threads_ = 0;
    TimePoint changed_{};
};

}  // namespace rove
