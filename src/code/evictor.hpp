// Evictor: evicts code and slices, so that the rest fits its budgets or a package can be forgotten; and makes room for what is to be
// loaded.
//
// Threads: under the lock of the cache.
//
// Invariants: nothing that runs, is being loaded or compiled, or that a call waits for is evicted. A package that was evicted stays known
// until Admission forgets it.
#pragma once

#include <vector>

#include "code/budgets.hpp"
#include "code/cache_lock.hpp"
#include "code/candidates.hpp"
#include "code/compile_queue.hpp"
#include "code/known.hpp"
#include "code/uses.hpp"

namespace rove::code {

// The number of idle packages that are evicted together to be forgotten: one barrier is enough for all.
inline constexpr std::size_t kIdleAtOnce = 8;

class Evictor {
public:
    // The parts of the cache that this one uses. They outlive it.
    struct Beside {
        CacheLock& lock;
        Known& known;
        Budgets& budgets;
        Candidates& candidates;
        Uses& uses;
        CompileQueue& compile_queue;
    };
    explicit Evictor(Beside beside)
        : lock_(beside.lock),
          known_(beside.known),
          budgets_(beside.budgets),
          candidates_(beside.candidates),
          uses_(beside.uses),
          compile_queue_(beside.compile_queue) {}

    // Evicts slices and code until the rest fits; of the newcomer only slices that this node does not run.
    void trim(PackageCode* newcomer = nullptr) REQUIRES(lock_of<CodeCache>);
    void trim_if_possible() noexcept
        REQUIRES(lock_of<CodeCache>);  // without memory for it, the next thread that leaves code tries again
    // Evicts the packages used longest ago, so that they can be forgotten.
    void evict_idle() REQUIRES(lock_of<CodeCache>);
    // Called before a package is to stay: makes room among those that stay, by evicting loaded ones whose statics no call has used yet.
    // overloaded: those that stay hold half of the budget already.
    [[nodiscard]] Status make_room_to_stay(const PackageCode& package, std::size_t more_bytes)
        REQUIRES(lock_of<CodeCache>);
    // Reserves room for code and statics before they are loaded (Budgets::GivesBack returns it).
    [[nodiscard]] Status reserve(PackageCode& package, std::size_t code, std::size_t statics)
        REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] std::size_t evictions() const REQUIRES(lock_of<CodeCache>) { return evictions_; }

private:
    void evict(const std::vector<PackageCode*>& victims) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] bool evict_uncalled(const PackageCode& but) REQUIRES(lock_of<CodeCache>);
    void drop_spare_slices(PackageCode& package) REQUIRES(lock_of<CodeCache>);

    CacheLock& lock_;
    Known& known_;
    Budgets& budgets_;
    Candidates& candidates_;
    Uses& uses_;
    CompileQueue& compile_queue_;
    std::size_t evictions_ GUARDED_BY(lock_of<CodeCache>) = 0;
};

}  // namespace rove::code
