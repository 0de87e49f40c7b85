// Locks that the compiler knows. clang's -Wthread-safety, an error in this project's build, checks that what is GUARDED_BY a lock is used
// under it, and that a function that REQUIRES one is called with it.
// (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html; LevelDB's port/thread_annotations.h shows the same use.)
//
// A lambda is looked at by itself, as a function that holds nothing: waits are loops, not wait(mutex, predicate), and a lambda that is called
// under a lock begins with assert_held().
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/clock.hpp"

#if defined(__clang__)
#define ROVE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define ROVE_THREAD_ATTRIBUTE(x)
#endif

// Of a class, and of one whose objects hold a lock while they live.
#define CAPABILITY(what) ROVE_THREAD_ATTRIBUTE(capability(what))
#define SCOPED_CAPABILITY ROVE_THREAD_ATTRIBUTE(scoped_lockable)
// Of a member, and of what a pointer points to.
#define GUARDED_BY(lock) ROVE_THREAD_ATTRIBUTE(guarded_by(lock))
#define PT_GUARDED_BY(lock) ROVE_THREAD_ATTRIBUTE(pt_guarded_by(lock))
// Of a function.
#define REQUIRES(...) ROVE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) ROVE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) ROVE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) ROVE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) ROVE_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define ASSERT_CAPABILITY(lock) ROVE_THREAD_ATTRIBUTE(assert_capability(lock))
#define RETURN_CAPABILITY(lock) ROVE_THREAD_ATTRIBUTE(lock_returned(lock))
// What cannot be said in these words; a comment beside it says why it is right.
#define NO_THREAD_SAFETY_ANALYSIS ROVE_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace rove {

class CAPABILITY("mutex") Mutex {
public:
    constexpr Mutex() = default;
    Mutex(const Mutex&) = delete;
    Mutex& operator=(const Mutex&) = delete;

    void lock() ACQUIRE() { mutex_.lock(); }
    void unlock() RELEASE() { mutex_.unlock(); }
    [[nodiscard]] bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
    // For the compiler: the caller holds it.
    void assert_held() const ASSERT_CAPABILITY(this) {}

private:
    friend class Condition;
    std::mutex mutex_;
};

// Holds a lock while it lives. The lock has lock() and unlock(): a Mutex, or the node's.
template <typename Lockable>
class SCOPED_CAPABILITY Locked {
public:
    explicit Locked(Lockable& lock) ACQUIRE(lock) : lock_(lock) { lock.lock(); }
    ~Locked() RELEASE() { lock_.unlock(); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

private:
    Lockable& lock_;
};
using MutexLock = Locked<Mutex>;

// Lets go of a lock that its thread holds while it lives, and takes it again.
template <typename Lockable>
class SCOPED_CAPABILITY Unlocked {
public:
    explicit Unlocked(Lockable& lock) RELEASE(lock) : lock_(lock) { lock.unlock(); }
    ~Unlocked() RELEASE() NO_THREAD_SAFETY_ANALYSIS { lock_.lock(); }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

private:
    Lockable& lock_;
};

// As std::condition_variable.
class Condition {
public:
    // The mutex is free meanwhile, and held again afterwards. It returns without a reason as well: ask again in a loop.
    void wait(Mutex& mutex) REQUIRES(mutex) {
        std::unique_lock lock(mutex.mutex_, std::adopt_lock);
        changed_.wait(lock);
        (void)lock.release();
    }
    // False: that time has come.
    [[nodiscard]] bool wait_until(Mutex& mutex, TimePoint limit) REQUIRES(mutex) {
        std::unique_lock lock(mutex.mutex_, std::adopt_lock);
        const bool told = changed_.wait_until(lock, limit) == std::cv_status::no_timeout;
        (void)lock.release();
        return told;
    }
    void notify_one() { changed_.notify_one(); }
    void notify_all() { changed_.notify_all(); }

private:
    std::condition_variable changed_;
};

}  // namespace rove
