// CompileQueue: the packages whose bitcode waits for the compiler.
//
// Threads: under the lock of the cache.
//
// Invariants: a package is in it exactly while its `compile` is `queued`, and once. Those without code come first, because calls wait for
// them.
#pragma once

#include <algorithm>
#include <deque>

#include "code/package_code.hpp"

namespace rove::code {

class CompileQueue {
public:
    [[nodiscard]] bool empty() const REQUIRES(lock_of<CodeCache>) { return queue_.empty(); }
    void push(PackageCode& package) REQUIRES(lock_of<CodeCache>) {
        const auto place = package.loaded() ? queue_.end()
                                            : std::find_if(queue_.begin(), queue_.end(),
                                                           [](const PackageCode* each)
                                                               REQUIRES(lock_of<CodeCache>) { return each->loaded(); });
        queue_.insert(place, &package);
        package.compile = PackageCode::Compile::queued;
    }
    // The first, which is compiled from now on. Precondition: there is one.
    [[nodiscard]] PackageCode& begin() REQUIRES(lock_of<CodeCache>) {
        PackageCode& package = *queue_.front();
        queue_.pop_front();
        package.compile = PackageCode::Compile::begun;
        return package;
    }
    // From here on it is not compiled, unless it is queued again.
    void leave(PackageCode& package) REQUIRES(lock_of<CodeCache>) {
        if (package.compile != PackageCode::Compile::queued) return;
        std::erase(queue_, &package);
        package.compile = PackageCode::Compile::none;
    }

private:
    std::deque<PackageCode*> queue_ GUARDED_BY(lock_of<CodeCache>);
};

}  // namespace rove::code
