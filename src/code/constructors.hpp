// Constructors: runs the constructors of packages, each package's on the worker that loads or compiles it, with the cache's lock free.
//
// Threads: under the lock of the cache, on a worker.
//
// Invariants: where a constructor throws, the destructors that it and those before it have registered have run when run() returns, because the
// code is released then.
#pragma once

#include <functional>
#include <string>

#include "code/workers.hpp"

namespace rove::code {

// Packages whose constructors run at once, on a thread each. Constructors are a peer's code, and may never end: beyond it, packages
// that have some are refused. 16 threads, with a stack of 8 MiB of address space each, beside the two that load and compile.
inline constexpr std::size_t kConstructingMax = 16;

class Constructors {
public:
    Constructors(CacheLock& lock, const std::string& node, Workers& workers)
        : lock_(lock), node_(node), workers_(workers) {}

    // Called by the duty's worker, which hands its duty over first. overloaded: nothing of the package has run.
    [[nodiscard]] Status run(PackageCode& package, Duty duty, const std::function<void()>& constructors)
        REQUIRES(lock_of<CodeCache>);

private:
    CacheLock& lock_;
    const std::string& node_;  // for messages
    Workers& workers_;
    std::size_t running_ GUARDED_BY(lock_of<CodeCache>) = 0;  // packages whose constructors run
};

}  // namespace rove::code
