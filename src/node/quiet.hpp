// A node's own threads, how many of them are kept by functions that wait quietly (quiet.cpp), and which further ones are held back
// for it.
//
// Threads: under the node's lock.
#pragma once

#include <map>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "code/cache.hpp"
#include "fabric/fabric.hpp"

namespace rove {

// Functions that have waited quietly and not returned, on threads of the node's own: each has another thread made in its place. 64
// stacks of 8 MiB are half a GiB of addresses, of which a thread that serves uses some 100 KiB. Further ones of their kind wait in
// their mailboxes. A function that does it for the first time was begun as any other, and has its thread all the same: then there
// are as many more as functions begin at once (NodeOptions::threads and the serving ones).
inline constexpr unsigned kQuietRunsMax = 64;
// One peer's calls have a quarter of these, so that four that take nothing of their large results hold up nobody else's.
inline constexpr unsigned kQuietRunsOfPeerMax = kQuietRunsMax / 4;
// Those that wait in their mailboxes wait for as long as others of them end. Where none has begun or ended for so long, they may be
// waiting for what is behind them in the same mailbox: from then on they are refused.
inline constexpr auto kQuietHoldFor = std::chrono::seconds(10);

class NodeCore;

struct OwnThread {
    const NodeCore* of;
    std::thread thread{};
    unsigned quiet_runs =
        0;  // functions on it that have waited quietly: while there are some it has another one in its place
    bool ended = false;
};

class QuietRuns {
public:
    [[nodiscard]] unsigned threads() const { return all_.threads; }  // that have another one in their place
    [[nodiscard]] bool is_full() const { return all_.threads >= kQuietRunsMax; }
    // By the link that the function's call came by; null: it is this node's own.
    void begin(const fabric::Link* link);
    [[nodiscard]] bool end(const fabric::Link* link);  // whether others were held back for it

    // A call of this function, from there, stays in its mailbox.
    [[nodiscard]] bool holds(const code::Function& function, const fabric::Link* link) const {
        return function.waits_quietly.load(std::memory_order_relaxed) && what_is_full(link) != nullptr;
    }
    // It has been held back for long enough.
    [[nodiscard]] bool gives_up(const code::Function& function, const fabric::Link* link) const;
    // When the first of those that are held back are given up.
    [[nodiscard]] std::optional<TimePoint> due() const;

private:
    struct Share {
        unsigned threads = 0;
        TimePoint changed{};
    };
    [[nodiscard]] const Share* what_is_full(const fabric::Link* link) const;
    Share all_;
    std::map<const fabric::Link*, Share> of_link_;  // those with some: kQuietRunsMax, and those beyond it
};

}  // namespace rove
