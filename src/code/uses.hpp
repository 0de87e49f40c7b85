// Uses: which packages run or are about to, and when each was used; what is checked before code is evicted.
//
// Threads: enter_leading(), leave_leading() and keep_leading() are for the one thread that leads the engine whose place is passed.
// note_call() and the atomics here are for any thread, without the lock. Functions that REQUIRE the lock of the cache are called under it.
//
// Invariants: a thread that enters code records that first and reads the function's target afterwards. A thread that evicts clears the target
// first, and reads the record after fence_others(). So at least one of them sees the other.
#pragma once

#include <atomic>

#include "base/mutex.hpp"
#include "code/leaders.hpp"
#include "code/package_code.hpp"

namespace rove::code {

class Uses {
public:
    [[nodiscard]] Leaders& leaders() { return leaders_; }

    // ---- a leader
    // The leader stores what it runs and then loads the target; an evicting thread clears the target and then checks what runs. At least
    // one of them must see the other. The evicting thread's barrier reaches all threads, so the leader needs only program order.
    [[nodiscard]] EntryPoint enter_leading(Leading& place, Function& function) {
        if (function.package == nullptr) return function.target.load(std::memory_order_relaxed);  // it is never evicted
        PackageCode& package = *function.package;
        place.runs_.store(&package, std::memory_order_relaxed);
        if (evictor_fences_)
            std::atomic_signal_fence(std::memory_order_seq_cst);
        else
            std::atomic_thread_fence(std::memory_order_seq_cst);
        const EntryPoint target = function.target.load(std::memory_order_acquire);
        if (target == nullptr) {
            place.runs_.store(nullptr, std::memory_order_relaxed);
            return nullptr;
        }
        // The bitcode for which it waited has been compiled since.
        if (package.awaited_until.load(std::memory_order_relaxed) != 0)
            package.awaited_until.store(0, std::memory_order_relaxed);
        const std::uint64_t epoch = epoch_.load(std::memory_order_relaxed);
        if (package.last_used.load(std::memory_order_relaxed) != epoch) {
            package.last_used.store(epoch, std::memory_order_relaxed);
            package.called.store(
                true,
                std::memory_order_relaxed);  // loading advances the epoch, so the first call takes this branch
        }
        return target;
    }
    static void leave_leading(Leading& place) { place.runs_.store(nullptr, std::memory_order_release); }
    // Counts what the leader runs as another thread's. Null: it runs nothing that can be evicted.
    [[nodiscard]] static PackageCode* keep_leading(Leading& place) {
        PackageCode* package = place.runs_.load(std::memory_order_relaxed);
        if (package == nullptr) return nullptr;
        package->running.fetch_add(1, std::memory_order_seq_cst);
        place.runs_.store(nullptr, std::memory_order_release);
        return package;
    }

    // ---- the coarse clock of uses: it advances with every load
    [[nodiscard]] std::uint64_t now() const { return epoch_.load(std::memory_order_relaxed); }
    // Returns the time before; later uses are newer.
    std::uint64_t advance() { return epoch_.fetch_add(1); }
    // A function of the package is called, at that time.
    static void note_call(PackageCode& package, std::uint64_t when) {
        package.last_used.store(when, std::memory_order_relaxed);
        package.called.store(true, std::memory_order_relaxed);
    }

    // ---- whether more is held than fits: the only check of a thread that leaves code
    [[nodiscard]] bool is_over_budget() const { return over_budget_.load(std::memory_order_relaxed); }
    void set_over_budget(bool is_over) { over_budget_.store(is_over, std::memory_order_relaxed); }

    // ---- before code is evicted
    // A barrier in all threads: afterwards every earlier record of a leader is visible.
    void fence_others() const;
    // To be called after that barrier.
    [[nodiscard]] bool is_running(const PackageCode& package) const REQUIRES(lock_of<CodeCache>) {
        return package.running.load(std::memory_order_seq_cst) != 0 || leaders_.any_runs(package);
    }
    // Whether the slices are in use: they are being loaded or compiled, or the package's code is to be loaded again.
    [[nodiscard]] bool needs_slices(const PackageCode& package) const REQUIRES(lock_of<CodeCache>);
    // Whether it runs, or is being loaded or compiled.
    [[nodiscard]] bool is_used(const PackageCode& package) const REQUIRES(lock_of<CodeCache>);
    // The same, or a call waits for it.
    [[nodiscard]] bool is_busy(const PackageCode& package) const REQUIRES(lock_of<CodeCache>);

private:
    static bool can_fence_all();

    std::atomic<bool> over_budget_{false};
    std::atomic<std::uint64_t> epoch_{1};
    Leaders leaders_;
    const bool evictor_fences_ = can_fence_all();  // with a barrier for all threads, so that the leader needs none
};

}  // namespace rove::code
