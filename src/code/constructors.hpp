// Constructors: runs the constructors of packages, each package's on the worker that loads or compiles it, without the cache's lock.
//
// Natively one thread runs all constructors of a program, and its thread-local objects live as long as the program, because statics may refer
// to them. Here constructors may never end, or may end their thread. So a few threads run them, one package after the other in each, and
// these threads are kept.
//
// Threads: under the lock of the cache, on a worker.
//
// Invariants: if a constructor throws, the destructors that it and those before it have registered have run when run() returns, because the
// code is released then, or is never called. No thread destroys an object of code that has been released.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "code/own_thread.hpp"
#include "code/workers.hpp"

namespace rove::code {

// Packages whose constructors run at the same time, on a thread each. Constructors are a peer's code, and may never end: beyond this
// number, packages that have some are refused. 16 threads, with a stack of 8 MiB of address space each, in addition to the two that load
// and compile.
inline constexpr std::size_t kConstructingMax = 16;
// All these threads, including those that constructors have ended or changed for good: their thread-local objects are kept for packages that
// were constructed there before.
inline constexpr std::size_t kConstructorThreadsMax = 2 * kConstructingMax;

class Constructors {
public:
    Constructors(CacheLock& lock, const std::string& node, Workers& workers)
        : lock_(lock), node_(node), workers_(workers) {}

    // Called by the duty's worker, which first hands its duty over. overloaded: no code of the package has run.
    [[nodiscard]] Status run(PackageCode& package, Duty duty, const std::function<void()>& constructors)
        REQUIRES(lock_of<CodeCache>);
    // Makes each thread destroy its thread-local objects, by destroy(its kernel's number). To be called before statics are destroyed, which
    // may refer to these objects, as in a program; their memory is freed with this object. The objects of a thread that a constructor ended
    // are destroyed by the calling thread; those of a thread in which constructors still run are left. Precondition: the cache has stopped.
    void destroy_objects(const std::function<void(pid_t)>& destroy) EXCLUDES(lock_of<CodeCache>);

private:
    // While a package's constructors run there, it belongs to the worker that runs them.
    struct Thread {
        std::unique_ptr<OwnThread> thread;  // null: not started yet
        bool runs = false;
    };
    [[nodiscard]] Result<Thread*> take_thread(const std::string& package) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Status run_in(Thread& mine, PackageCode& package, const std::function<void()>& constructors) const
        EXCLUDES(lock_of<CodeCache>);
    static void destroy(Thread& mine, PackageCode& package, const std::string& there);
    [[nodiscard]] OwnThread* thread(std::size_t number) const EXCLUDES(lock_of<CodeCache>);

    CacheLock& lock_;
    const std::string& node_;  // for messages
    Workers& workers_;
    std::size_t running_ GUARDED_BY(lock_of<CodeCache>) = 0;  // packages whose constructors run
    std::list<Thread> threads_ GUARDED_BY(lock_of<CodeCache>);
};

}  // namespace rove::code
