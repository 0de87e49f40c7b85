// Workers: the threads of a cache. One loads images, and packages that a peer has asked to be loaded; one compiles bitcode, which may take
// LLVM seconds; others run constructors, which may never end.
//
// Threads: under the lock of the cache. The workers take it themselves.
//
// Invariants: a duty has one worker at most, which is started with the first piece of work. A worker that hands its duty over ends after its
// current piece of work. Each thread owns what it uses, so a thread that does not end in time is abandoned with all of that.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <utility>

#include "code/cache_lock.hpp"
#include "code/evictor.hpp"

namespace rove::code {

// The work of a worker: loading images and requests to load, or compiling bitcode.
enum class Duty : std::uint8_t { images, bitcode };
inline constexpr std::size_t kDuties = 2;

class Workers {
public:
    // The parts of the cache that this one uses. They outlive it.
    struct Beside {
        CacheLock& lock;
        const CodeOptions& options;
        Evictor& evictor;
        std::function<std::shared_ptr<void>()> all;  // what the threads use: each thread owns it
        // Does a duty's next piece of work, under the lock. False: there is nothing to do.
        std::function<bool(Duty)> do_next;
    };
    explicit Workers(Beside beside)
        : lock_(beside.lock),
          options_(beside.options),
          evictor_(beside.evictor),
          all_(std::move(beside.all)),
          do_next_(std::move(beside.do_next)) {}

    // Starts a worker if the duty has none. The worker first calls `first`, without the lock. overloaded: no thread can be created now.
    [[nodiscard]] Status start(Duty duty, std::function<void()> first = {}) REQUIRES(lock_of<CodeCache>);
    // Called by the duty's worker: another thread takes the duty over.
    [[nodiscard]] Status hand_over(Duty duty, const PackageCode& package) REQUIRES(lock_of<CodeCache>);
    // Stops the cache, and waits for the workers until that time; workers that do not end by then are abandoned.
    void stop(TimePoint until) REQUIRES(lock_of<CodeCache>);

    // ---- a worker's piece of work
    void begin_work() REQUIRES(lock_of<CodeCache>) { ++working_; }
    // Wakes the threads that wait for the package, and calls on_ready.
    void end_work(const Digest& package) REQUIRES(lock_of<CodeCache>);
    void end_work() REQUIRES(lock_of<CodeCache>) {  // work that was no package's
        --working_;
        lock_.notify_all();
    }
    [[nodiscard]] std::size_t working() const REQUIRES(lock_of<CodeCache>) { return working_; }

private:
    struct Worker {
        const Duty duty;
        std::thread thread GUARDED_BY(lock_of<CodeCache>);
        pid_t kernel_id GUARDED_BY(lock_of<CodeCache>) = 0;
        bool ended GUARDED_BY(lock_of<CodeCache>) = false;
        bool abandoned GUARDED_BY(lock_of<CodeCache>) = false;
    };
    [[nodiscard]] Worker*& on_duty(Duty duty) REQUIRES(lock_of<CodeCache>) {
        return on_duties_[static_cast<std::size_t>(duty)];
    }
    [[nodiscard]] bool work(Worker& self) EXCLUDES(lock_of<CodeCache>);
    void reap() REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] bool have_ended() const REQUIRES(lock_of<CodeCache>) {
        return std::ranges::all_of(workers_,
                                   [](const Worker& each) REQUIRES(lock_of<CodeCache>) { return each.ended; });
    }

    CacheLock& lock_;
    const CodeOptions& options_;
    Evictor& evictor_;
    const std::function<std::shared_ptr<void>()> all_;
    const std::function<bool(Duty)> do_next_;
    std::size_t working_ GUARDED_BY(lock_of<CodeCache>) = 0;  // workers that compile or load something
    std::list<Worker> workers_ GUARDED_BY(lock_of<CodeCache>);
    // The worker of each duty; null: none.
    std::array<Worker*, kDuties> on_duties_ GUARDED_BY(lock_of<CodeCache>){};
};

}  // namespace rove::code
