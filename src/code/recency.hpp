// Packages in the order in which they were used last.
//
// Calls note only when they were (PackageCode::last_used, without the cache's lock), so an entry may be listed by an older
// time than its own; it is listed anew when it is met at the front. Times only advance, so the front is the oldest then.
// Each move answers to a call since the last one: what a look costs does not grow with the packages there are.
//
// Threads: under the lock of the cache.
#pragma once

#include <cstdint>
#include <utility>

#include "code/package_code.hpp"

namespace rove::code {

class RecencyList {
public:
    explicit RecencyList(Listing PackageCode::* listing) : listing_(listing) {}
    // Whether it is listed from now on. Takes no memory: a package has its place in each list from the beginning.
    void keep(PackageCode& package, bool listed) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] std::size_t size() const REQUIRES(lock_of<CodeCache>) { return order_.size(); }
    // The package that has not been used for longest, of those that are not busy. Who is busy counts as used at `now`.
    template <typename Busy>
    [[nodiscard]] PackageCode* oldest(std::uint64_t now, const Busy& busy) REQUIRES(lock_of<CodeCache>);

private:
    // Busy packages that one look passes over: more than a node's threads and peers keep busy at the end of this list, because
    // who is passed over goes to its front end. Bounds a look.
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
            if (first->first.first == now) return nullptr;  // all there are were passed over
            ++passed;
        }
        keep(package, false);
        keep(package, true);
    }
    return nullptr;
}

}  // namespace rove::code
