// Spinning on mailboxes: what a leader checks while it has released the engine's lock.
//
// Threads: AwaitedSignals are used by one thread, the one that leads, without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/fabric.hpp"

namespace rove {

// How many times each mailbox is checked before the leader lets other threads have the core. A reply on this machine takes a few hundred
// nanoseconds; the most turns last some 20 us, the fewest 1 us.
inline constexpr unsigned kSpinTurnsMax = 1000;
inline constexpr unsigned kSpinTurnsMin = 100;

// The next signals of a node's links, as of the moment when the lock was released. It keeps the links alive, because another thread may
// remove one while this thread looks.
struct AwaitedSignals {
    std::uint64_t version = 0;  // the version of the node's links
    std::vector<std::shared_ptr<fabric::Link>> links;
    std::vector<fabric::AwaitedSignal> signals;
    const std::uint64_t* cold_word = nullptr;  // Fabric::cold_word

    // For a thread that stops checking: links that have ended must not wait for its next turn at the lead.
    void clear() noexcept {
        version = 0;
        links.clear();
        signals.clear();
        cold_word = nullptr;
    }
    [[nodiscard]] bool arrived() const {
        if (cold_word != nullptr &&
            std::atomic_ref(*const_cast<std::uint64_t*>(cold_word)).load(std::memory_order_relaxed) != 0)
            return true;
        for (const fabric::AwaitedSignal& signal : signals)
            if (signal.arrived()) return true;
        return false;
    }
};

// Checks until a signal has arrived, `attention` is set, or the turns are over. True: one of the first two. It pauses between looks: without a
// pause, loads of the line are in flight when another core takes the line away, and must start again; a hand-off then takes 57 ns instead
// of 35 (two cores of a Zen 5).
[[nodiscard]] bool spin(const AwaitedSignals& awaited, const std::atomic<bool>& attention, unsigned turns);

}  // namespace rove
