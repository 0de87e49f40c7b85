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

// Packages with constructors and thread-local variables: the thread of the constructors stays for as long as the package, because statics
// may refer to its thread-local objects. Each costs a thread that sleeps.
inline constexpr std::size_t kStayingMax = 64;

class Constructors {
public:
    Constructors(CacheLock& lock, const std::string& node, Workers& workers)
        : lock_(lock), node_(node), workers_(workers) {
        prepare_own_threads();
    }

    // Called by the duty's worker, which hands its duty over first. overloaded: nothing of the package has run.
    [[nodiscard]] Status run(PackageCode& package, Duty duty, const std::function<void()>& constructors)
        REQUIRES(lock_of<CodeCache>);

private:
    // What has been constructed is destroyed where they fail. `thread`: theirs, if they have run.
    [[nodiscard]] Status run_in(std::unique_ptr<OwnThread>& thread, PackageCode& package,
                                const std::function<void()>& constructors) const EXCLUDES(lock_of<CodeCache>);

    CacheLock& lock_;
    const std::string& node_;  // for messages
    Workers& workers_;
    std::size_t running_ GUARDED_BY(lock_of<CodeCache>) = 0;  // packages whose constructors run
    std::size_t staying_ GUARDED_BY(lock_of<CodeCache>) = 0;  // packages whose thread stays
};

}  // namespace rove::code
