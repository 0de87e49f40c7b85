// Packages in the order of their last use.
//
// A call only records its time in the package (PackageCode::last_used, without the cache's lock), so the list may have a package under an
// older time. Such a package is listed again, under its newer time, when it is found at the front. Times only advance, so the front is the
// oldest package after that. Each call causes at most one move, so the cost of finding the oldest does not grow with the number of
// packages.
//
// Threads: under the lock of the cache. Invariant: a listed package has one place, under a time that is not later than its last use.
#pragma once

#include <cstdint>
#include <utility>

#include "code/package_code.hpp"

namespace rove::code {

class RecencyList {
public:
    explicit RecencyList(Listing PackageCode::* listing) : listing_(listing) {}
    // Lists the package or removes it. Takes no memory: a package has its place in each list from the beginning.
    void keep(PackageCode& package, bool listed) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] std::size_t size() const REQUIRES(lock_of<CodeCache>) { return order_.size(); }
    // The package, among those that are not busy, that has not been used for the longest time. Busy packages count as used at `now`.
    template <typename Busy>
    [[nodiscard]] PackageCode* oldest(std::uint64_t now, const Busy& busy) REQUIRES(lock_of<CodeCache>);

private:
    // The number of busy packages that one call of oldest() skips, which bounds its cost: more than a node's threads and peers keep busy at
    // this end of the list, because a package that is skipped moves to the other end.
    static constexpr unsigned kBusyMax = 64;

    Listing PackageCode::* const listing_;
    Listing::Order order_ GUARDED_BY(lock_of<CodeCache>);
};

inline void RecencyList::keep(PackageCode& package, bool listed) {
    Listing& of = package.*listing_;
    if (of.is_listed() == listed) return;
    if (!listed) {
        of.place = order_.extract(of.at);
        return;
    }
    of.place.key() = {package.last_used.load(std::memory_order_relaxed), package.number};
    of.at = order_.insert(std::move(of.place)).position;
}

template <typename Busy>
PackageCode* RecencyList::oldest(std::uint64_t now, const Busy& busy) {
    unsigned passed = 0;
    while (!order_.empty() && passed < kBusyMax) {
        const auto first = order_.begin();
        PackageCode& package = *first->second;
        if (package.last_used.load(std::memory_order_relaxed) == first->first.first) {
            if (!busy(package)) return &package;
            package.last_used.store(now, std::memory_order_relaxed);
            if (first->first.first == now) return nullptr;  // all packages were skipped
            ++passed;
        }
        keep(package, false);
        keep(package, true);
    }
    return nullptr;
}

}  // namespace rove::code
