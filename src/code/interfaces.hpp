// Interfaces: packages to whose names functions that arrive later are linked.
//
// Threads: under the lock of the cache.
//
// Invariants: an interface is never evicted, because code that is linked to it has its addresses. A name of the node's own process is never
// replaced by one that a peer has sent.
#pragma once

#include <vector>

#include "code/cache_lock.hpp"
#include "code/evictor.hpp"
#include "code/symbols.hpp"

namespace rove::code {

class Interfaces {
public:
    Interfaces(CacheLock& lock, Symbols& symbols, Budgets& budgets, Evictor& evictor)
        : lock_(lock), symbols_(symbols), budgets_(budgets), evictor_(evictor) {}

    // Links functions that arrive from now on to the names of this package, which is loaded and held.
    [[nodiscard]] Result<LoadReport> link(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    // Runs the interfaces' destructors, each before those of the interfaces that it was linked to. Called without the lock, after the cache
    // has stopped. False: one interface is kept (PackageCode::end), and with it all that it may have been linked to.
    [[nodiscard]] bool end_all() NO_THREAD_SAFETY_ANALYSIS;
    [[nodiscard]] bool empty() const NO_THREAD_SAFETY_ANALYSIS { return linked_.empty(); }  // called like end_all()

private:
    CacheLock& lock_;
    Symbols& symbols_;
    Budgets& budgets_;
    Evictor& evictor_;
    std::vector<PackageCode*> linked_ GUARDED_BY(lock_of<CodeCache>);  // in the order in which they were linked
};

}  // namespace rove::code
