// QuietRuns: how many of a node's own threads are in functions that have waited quietly, and which further calls are held back in their
// mailboxes for that reason.
//
// Threads: under the engine's lock. Invariants: `all_` counts the sum of the peers' threads, and only peers that have some are listed.
#pragma once

#include <map>
#include <optional>

#include "base/clock.hpp"
#include "code/cache.hpp"

namespace rove {

// Functions that have waited quietly and not returned, on threads of the node's own: for each of them another thread is made. 64 stacks of
// 8 MiB are half a GiB of addresses, of which a thread that serves uses some 100 KiB. While 64 functions wait so, calls of functions that
// have waited quietly before, and of functions that have never ended yet, stay in their mailboxes. Calls of all other functions begin,
// because the 64 may wait for one of them. More than 64 threads are made in two cases: for the first function of each of 256 peers, and for
// functions that had begun before the bound was reached: at most as many as the node has threads.
inline constexpr unsigned kQuietRunsMax = 64;
// Of this many peers each may have one, whatever the others have.
inline constexpr std::size_t kFirstOfPeersMax = 256;
// One peer's calls may use a quarter of these.
inline constexpr unsigned kQuietRunsOfPeerMax = kQuietRunsMax / 4;
// Calls that are held back in their mailboxes wait for as long as other such functions begin and end. If none has begun or ended for this
// time, they may be waiting for a frame after the held call in the same mailbox: from then on held calls are refused.
inline constexpr auto kQuietHoldFor = std::chrono::seconds(10);

class PeerState;

class QuietRuns {
public:
    explicit QuietRuns(const unsigned& own_threads) : own_threads_(own_threads) {}
    [[nodiscard]] unsigned threads() const { return all_.threads; }  // threads that another one replaces

    // `from`: the peer whose call the function is; null: it is this node's own. False: too many functions wait quietly.
    [[nodiscard]] bool begin(const PeerState* from);
    [[nodiscard]] bool end(const PeerState* from);  // whether others were held back because of it

    // Whether a call of this function by that peer stays in its mailbox.
    [[nodiscard, gnu::always_inline]] bool holds(const code::Function& function, const PeerState* from) const {
        return all_.threads >= kQuietRunsOfPeerMax && may_wait_quietly(function) && what_is_full(from, 0) != nullptr;
    }
    // Until when the call is held back, if no function begins or ends in that time: it is refused then. Nothing: it is not held back.
    [[nodiscard]] std::optional<TimePoint> held_until(const code::Function& function, const PeerState* from) const;
    [[nodiscard]] static Error too_many(const std::string& node, const code::Function& function);

private:
    struct Share {
        unsigned threads = 0;
        TimePoint changed{};
    };
    [[nodiscard]] static bool may_wait_quietly(const code::Function& function) {
        return function.waits_quietly.load(std::memory_order_relaxed) || !function.pace.has_ended();
    }
    [[nodiscard]] const Share* what_is_full(const PeerState* from, unsigned beyond) const;
    const unsigned& own_threads_;
    Share all_;
    std::map<const PeerState*, Share> of_peer_;  // peers that have some
};

}  // namespace rove
