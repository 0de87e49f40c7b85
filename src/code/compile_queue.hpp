// CompileQueue: the packages whose bitcode waits for the compiler.
//
// Threads: under the lock of the cache.
//
// Invariants: a package is in it exactly while its `compile` is `queued`, and once. Those without code come first, because calls wait for
// them; and of these no node's come twice in a row while another's wait, because LLVM may take two minutes for one (bitcode::Bounds).
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

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
    // The next, which is compiled from now on. Precondition: there is one.
    [[nodiscard]] PackageCode& begin() REQUIRES(lock_of<CodeCache>) {
        auto next = std::find_if(queue_.begin(), queue_.end(),
                                 [this](const PackageCode* each)
                                     REQUIRES(lock_of<CodeCache>) { return each->from != served_ || each->loaded(); });
        if (next == queue_.end() || (*next)->loaded()) next = queue_.begin();
        PackageCode& package = **next;
        queue_.erase(next);
        served_ = package.from;
        package.compile = PackageCode::Compile::begun;
        return package;
    }
    // Takes out a package that no call waits for any more, and returns its digest. It may be queued again. Nothing: there is none.
    [[nodiscard]] std::optional<Digest> leave_in_vain() REQUIRES(lock_of<CodeCache>) {
        const auto found =
            std::find_if(queue_.begin(), queue_.end(),
                         [](const PackageCode* each) REQUIRES(lock_of<CodeCache>) { return each->waits_in_vain(); });
        if (found == queue_.end()) return std::nullopt;
        const Digest digest = (*found)->store->digest();
        (*found)->compile = PackageCode::Compile::none;
        queue_.erase(found);
        return digest;
    }
    // From here on it is not compiled, unless it is queued again.
    void leave(PackageCode& package) REQUIRES(lock_of<CodeCache>) {
        if (package.compile != PackageCode::Compile::queued) return;
        std::erase(queue_, &package);
        package.compile = PackageCode::Compile::none;
    }

    // Modules were evicted. The compiler frees what they had when no package waits for it.
    void note_evicted() REQUIRES(lock_of<CodeCache>) { has_evicted_ = true; }
    [[nodiscard]] bool has_evicted() const REQUIRES(lock_of<CodeCache>) { return has_evicted_; }
    [[nodiscard]] bool take_evicted() REQUIRES(lock_of<CodeCache>) { return std::exchange(has_evicted_, false); }

private:
    std::deque<PackageCode*> queue_ GUARDED_BY(lock_of<CodeCache>);
    bool has_evicted_ GUARDED_BY(lock_of<CodeCache>) = false;
    NodeId served_ GUARDED_BY(lock_of<CodeCache>) = kNoNode;  // whose package was last
};

}  // namespace rove::code
