// The lock of a cache, what threads wait for under it, whether the cache has stopped, and how work is done without the lock.
//
// Threads: any; functions that are called under the lock say so. If a thread takes both, it takes `calling_back_` before the lock.
//
// Invariants: once the cache has stopped, nothing is called back, and work that is done without the lock ends as `cancelled`. An exception
// of the work becomes an error: no thread of the cache ends by an exception.
#pragma once

#include <condition_variable>
#include <exception>
#include <string>
#include <type_traits>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "code/package_code.hpp"

namespace rove::code {

class CacheLock {
public:
    explicit CacheLock(const std::string& node) : node_(node) {}

    // Locked by LockOf and Unlocked.
    [[nodiscard]] MutexOf<CodeCache>& mutex() const { return mutex_; }

    // ---- waiting for each other
    void notify_all() { changed_.notify_all(); }
    void wait() REQUIRES(lock_of<CodeCache>) { changed_.wait(mutex_); }
    void wait_until(TimePoint until) REQUIRES(lock_of<CodeCache>) { (void)changed_.wait_until(mutex_, until); }

    // ---- stopping
    void stop() REQUIRES(lock_of<CodeCache>) {
        stopped_ = true;
        notify_all();
    }
    [[nodiscard]] bool has_stopped() const REQUIRES(lock_of<CodeCache>) { return stopped_; }
    // Waits until none of the cache's threads is in a callback.
    void wait_for_callbacks() REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Error why_cancelled() const;

    // ---- work
    // Calls `what` without the lock; does nothing once the cache has stopped.
    template <typename What>
    void call_back(const What& what) REQUIRES(lock_of<CodeCache>);
    // Does a piece of work. Its exception becomes an error.
    template <typename Work>
    [[nodiscard]] std::invoke_result_t<const Work&> or_error(const PackageCode& package, const Work& work) const
        REQUIRES(lock_of<CodeCache>);
    // The same without the lock. It is also an error if the cache has stopped.
    template <typename Work>
    [[nodiscard]] std::invoke_result_t<const Work&> unlocked(const PackageCode& package, const Work& work) const
        REQUIRES(lock_of<CodeCache>);

private:
    // If there is no memory for the names in its message, returns a shorter one that needs none.
    [[nodiscard]] Error no_memory_for(const PackageCode& package) const noexcept;
    // Turns an exception of the work into an error, so that its thread can do the next piece of work.
    [[nodiscard]] Error why_not_loaded(const PackageCode& package, const std::exception& thrown) const;

    const std::string& node_;  // for messages
    mutable MutexOf<CodeCache> mutex_;
    std::condition_variable_any changed_;
    bool stopped_ GUARDED_BY(lock_of<CodeCache>) = false;
    Mutex calling_back_;  // held during callbacks
};

template <typename What>
void CacheLock::call_back(const What& what) {
    const Unlocked free(mutex_);
    const MutexLock calls(calling_back_);
    const bool stopped = [this] {
        const LockOf look(mutex_);
        return stopped_;
    }();
    if (!stopped) what();
}

template <typename Work>
std::invoke_result_t<const Work&> CacheLock::or_error(const PackageCode& package, const Work& work) const {
    try {
        return work();
    } catch (const std::exception& error) {
        return tl::unexpected<Error>(why_not_loaded(package, error));
    }
}

template <typename Work>
std::invoke_result_t<const Work&> CacheLock::unlocked(const PackageCode& package, const Work& work) const {
    auto done = [&]() REQUIRES(lock_of<CodeCache>) -> std::invoke_result_t<const Work&> {
        const Unlocked free(mutex_);
        try {
            return work();
        } catch (const std::exception& error) {
            return tl::unexpected<Error>(why_not_loaded(package, error));
        }
    }();
    if (stopped_) return tl::unexpected<Error>(why_cancelled());
    return done;
}

}  // namespace rove::code
