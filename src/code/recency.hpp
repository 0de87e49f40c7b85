// Packages in the order in which they were used last.
//
// Calls note only when they were (PackageCode::last_used, without the cache's lock), so an entry may be listed by an older
// time than its own; it is listed anew when it is met at the front. Times only advance, so the front is the oldest then.
// Each move answers to a call since the last one: what a look costs does not grow with the packages there are.
//
// Threads: under the cache's lock.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "code/package_code.hpp"

namespace rove::code {

class RecencyList {
public:
    // Whether it is listed from now on.
    void keep(PackageCode& package, bool listed);
    // The package that has not been used for longest, of those that are not busy. Who is busy counts as used at `now`.
    template <typename Busy>
    [[nodiscard]] PackageCode* oldest(std::uint64_t now, const Busy& busy);

private:
    // Busy packages that one look passes over: more than a node's threads and peers keep busy at the end of this list, because
    // who is passed over goes to its front end. Bounds a look.
    static constexpr unsigned kBusyMax = 64;

    using Key = std::pair<std::uint64_t, std::uint64_t>;  // last use; of equals, the one that was known first
    void list(PackageCode& package);

    std::map<Key, PackageCode*> order_;
    std::unordered_map<const PackageCode*, Key> keys_;
};

inline void RecencyList::list(PackageCode& package) {
    const Key key{package.last_used.load(std::memory_order_relaxed), package.number};
    order_[key] = &package;
    keys_[&package] = key;
}

inline void RecencyList::keep(PackageCode& package, bool listed) {
    const auto known = keys_.find(&package);
    if ((known != keys_.end()) == listed) return;
    if (listed) return list(package);
    order_.erase(known->second);
    keys_.erase(known);
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
        order_.erase(first);
        list(package);
    }
    return nullptr;
}

}  // namespace rove::code
