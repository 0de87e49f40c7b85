// Leading: an engine's place in a code cache, where it records what its leader runs and whether it may still use forgotten packages.
//
// Threads: `runs_` is stored by the engine's leader (Uses) and loaded by any; has_let_go() is for the thread that has the engine's lock.
//
// Invariant: while `runs_` is not null, the engine's leader is in that package's code, or about to load its address; the code stays loaded.
#pragma once

#include <atomic>
#include <cstdint>

namespace rove::code {

class PackageCode;

class Leading {
public:
    explicit Leading(const std::atomic<std::uint64_t>& forgotten)
        : forgotten_(forgotten), let_go_(forgotten.load(std::memory_order_relaxed)) {}
    Leading(const Leading&) = delete;

    // Whether nothing has been forgotten since its last let_go(). Two relaxed loads, for each turn of an engine: what it misses now it sees
    // in the next.
    [[nodiscard]] bool has_let_go() const {
        return let_go_.load(std::memory_order_relaxed) == forgotten_.load(std::memory_order_relaxed);
    }

private:
    friend class Leaders;
    friend class Uses;
    const std::atomic<std::uint64_t>& forgotten_;
    std::atomic<std::uint64_t> let_go_;
    // On a cache line of its own: other threads read it only before they evict. Not null: the leader has entered by Uses::enter_leading,
    // and that package stays loaded.
    alignas(64) std::atomic<PackageCode*> runs_{nullptr};
};

}  // namespace rove::code
