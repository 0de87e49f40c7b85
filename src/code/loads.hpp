// Loads: requests to load packages before their calls. The worker for images carries them out and answers them.
//
// Threads: under the lock of the cache; do_next() on the worker for images. Answers are given without the lock.
//
// Invariants: each request is answered once, unless the cache stops before. It stays queued while its package is being loaded or compiled,
// and the package's code stays until it is linked.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "code/interfaces.hpp"
#include "code/tiers.hpp"

namespace rove::code {

class Loads {
public:
    using Done = std::function<void(const Result<LoadReport>&)>;
    // The parts of the cache that this one uses. They outlive it.
    struct Beside {
        CacheLock& lock;
        const CodeOptions& options;
        const Known& known;
        Tiers& tiers;
        Interfaces& interfaces;
        Workers& workers;
    };
    explicit Loads(Beside beside)
        : lock_(beside.lock),
          options_(beside.options),
          known_(beside.known),
          tiers_(beside.tiers),
          interfaces_(beside.interfaces),
          workers_(beside.workers) {}

    // Implements CodeCache::load_later.
    [[nodiscard]] Status queue(const PackageStore& package, Done done, NodeId asker) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] bool has_queued() const REQUIRES(lock_of<CodeCache>) { return !queue_.empty(); }
    // Does the next request. False: there is none.
    [[nodiscard]] bool do_next() REQUIRES(lock_of<CodeCache>);

private:
    struct Load {
        Running running;  // kept until the package is linked
        Done done;
        NodeId asker;
    };

    CacheLock& lock_;
    const CodeOptions& options_;
    const Known& known_;
    Tiers& tiers_;
    Interfaces& interfaces_;
    Workers& workers_;
    std::deque<Load> queue_ GUARDED_BY(lock_of<CodeCache>);
};

}  // namespace rove::code
