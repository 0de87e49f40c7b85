// Locks that the compiler knows. clang's -Wthread-safety, an error in this project's build, checks that what is GUARDED_BY a lock is used
// under it, and that a function that REQUIRES one is called with it.
// (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html; LevelDB's port/thread_annotations.h shows the same use.)
//
// The compiler checks a lambda by itself, as a function that holds no lock.
#pragma once

#include <mutex>

#if defined(__clang__)
#define ROVE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define ROVE_THREAD_ATTRIBUTE(x)
#endif

// Of a class, and of one whose objects hold a lock while they live.
#define CAPABILITY(what) ROVE_THREAD_ATTRIBUTE(capability(what))
#define SCOPED_CAPABILITY ROVE_THREAD_ATTRIBUTE(scoped_lockable)
// Of a member.
#define GUARDED_BY(lock) ROVE_THREAD_ATTRIBUTE(guarded_by(lock))
// Of a function.
#define REQUIRES(...) ROVE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) ROVE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) ROVE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) ROVE_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
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

private:
    std::mutex mutex_;
};

// Holds a mutex while it lives.
class SCOPED_CAPABILITY MutexLock {
public:
    explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
    ~MutexLock() RELEASE() { mutex_.unlock(); }
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;

private:
    Mutex& mutex_;
};

// Releases a mutex that its thread holds while it lives, and takes it again.
class SCOPED_CAPABILITY Unlocked {
public:
    explicit Unlocked(Mutex& mutex) RELEASE(mutex) : mutex_(mutex) { mutex.unlock(); }
    ~Unlocked() RELEASE() NO_THREAD_SAFETY_ANALYSIS {
        mutex_.lock();
    }  // to the compiler, this ends what the constructor did
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

private:
    Mutex& mutex_;
};

}  // namespace rove
