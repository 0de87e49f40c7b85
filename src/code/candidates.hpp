// Candidates: lists of the packages whose slices or code may be evicted, or which may be forgotten, each in the order of last use.
//
// Threads: under the lock of the cache.
//
// Invariants: a package is listed by what it was last counted as (PackageCode::counted). Listing it takes no memory.
#pragma once

#include "code/recency.hpp"

namespace rove::code {

class Candidates {
public:
    // To be called after parts of the package were added or removed, and counted.
    void list(PackageCode& package) noexcept REQUIRES(lock_of<CodeCache>) {
        const PackageCode::Counted& now = package.counted;
        const bool may_go = now.budget == Budget::evictable;
        with_slices_.keep(package, now.slices > 0 && (may_go ? !package.loaded() : now.budget == Budget::pinned));
        evictable_.keep(package, may_go && package.loaded());
        idle_.keep(package, may_go && package.loaded() && !package.data);
        forgettable_.keep(package,
                          may_go && !package.loaded() && !package.keeps_statics() && !package.ran_constructors());
    }
    void leave_out(PackageCode& package) noexcept REQUIRES(lock_of<CodeCache>) {
        for (RecencyList* list : {&with_slices_, &evictable_, &idle_, &forgettable_}) list->keep(package, false);
    }

    // Packages whose slices are here and may be dropped: not loaded, or pinned.
    [[nodiscard]] RecencyList& with_slices() REQUIRES(lock_of<CodeCache>) { return with_slices_; }
    // Loaded packages.
    [[nodiscard]] RecencyList& evictable() REQUIRES(lock_of<CodeCache>) { return evictable_; }
    // Loaded packages without statics.
    [[nodiscard]] RecencyList& idle() REQUIRES(lock_of<CodeCache>) { return idle_; }
    // Packages that are not loaded, and have nothing that must be kept.
    [[nodiscard]] RecencyList& forgettable() REQUIRES(lock_of<CodeCache>) { return forgettable_; }

private:
    RecencyList with_slices_ GUARDED_BY(lock_of<CodeCache>){&PackageCode::with_slices};
    RecencyList evictable_ GUARDED_BY(lock_of<CodeCache>){&PackageCode::evictable};
    RecencyList idle_ GUARDED_BY(lock_of<CodeCache>){&PackageCode::idle};
    RecencyList forgettable_ GUARDED_BY(lock_of<CodeCache>){&PackageCode::forgettable};
};

}  // namespace rove::code
