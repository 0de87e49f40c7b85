// Locks that the compiler knows. clang's -Wthread-safety, an error in this project's build, checks that what is GUARDED_BY a lock is used
// under it, and that a function that REQUIRES one is called with it.
// (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html; LevelDB's port/thread_annotations.h shows the same use.)
//
// The compiler checks a lambda separately, as a function that holds no lock, unless it says REQUIRES as a function does:
//     [&](const Package& each) REQUIRES(mutex_) { … }
// It does not check calls by pointers, nor those that the standard library makes.
//
// Threads: a scope (MutexLock, Unlocked and the like) belongs to the thread that makes it. None of these locks may be taken twice by a
// thread.
//
// Invariant: a scope leaves its lock as it found it: one that takes the lock has released it at its end, and one that releases it has taken
// it again.
#pragma once

#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define ROVE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define ROVE_THREAD_ATTRIBUTE(x)
#endif

// Annotations of a class of locks, and of a class whose objects hold a lock during their lifetime.
#define CAPABILITY(what) ROVE_THREAD_ATTRIBUTE(capability(what))
#define SCOPED_CAPABILITY ROVE_THREAD_ATTRIBUTE(scoped_lockable)
// Annotations of a member, and of a member that is a pointer, for what it points to.
#define GUARDED_BY(lock) ROVE_THREAD_ATTRIBUTE(guarded_by(lock))
#define PT_GUARDED_BY(lock) ROVE_THREAD_ATTRIBUTE(pt_guarded_by(lock))
// Annotations of a function.
#define REQUIRES(...) ROVE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) ROVE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) ROVE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) ROVE_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) ROVE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) ROVE_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define ASSERT_HELD(...) ROVE_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) ROVE_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
// For code that these annotations cannot express; a comment next to it says why it is correct.
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

// Holds a mutex during its lifetime.
class SCOPED_CAPABILITY MutexLock {
public:
    explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
    ~MutexLock() RELEASE() { mutex_.unlock(); }
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;

private:
    Mutex& mutex_;
};

// ---- a lock that guards members of several classes
//
// The compiler compares locks by the expressions that name them: it would not know that a part's reference is the mutex of its owner.
// So the lock has a name, which means the lock of any object of the class: a part's member is GUARDED_BY(lock_of<Owner>), and a
// function of either REQUIRES(lock_of<Owner>). The compiler does not know which owner it is. Precondition: no thread holds two of these.

class CAPABILITY("mutex") LockName {};
template <typename Owner>
inline constexpr LockName lock_of;

// These correspond to Mutex and MutexLock.
template <typename Owner>
class MutexOf {
public:
    using NamedAfter = Owner;  // it is lock_of<Owner>
    constexpr MutexOf() = default;
    MutexOf(const MutexOf&) = delete;
    MutexOf& operator=(const MutexOf&) = delete;

    void lock() ACQUIRE(lock_of<Owner>) NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
    void unlock() RELEASE(lock_of<Owner>) NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }

private:
    std::mutex mutex_;
};

template <typename Owner>
class SCOPED_CAPABILITY LockOf {
public:
    explicit LockOf(MutexOf<Owner>& mutex) ACQUIRE(lock_of<Owner>) : mutex_(mutex) { mutex.lock(); }
    ~LockOf() RELEASE() { mutex_.unlock(); }
    LockOf(const LockOf&) = delete;
    LockOf& operator=(const LockOf&) = delete;

private:
    MutexOf<Owner>& mutex_;
};

// Releases, during its lifetime, a lock that its thread holds, and takes it again at its end, also if an exception is thrown. This one is for locks
// that have a name (MutexOf, HeldLock). The one for a Mutex differs in what it tells the compiler: that mutex, not a name.
template <typename Lock>
class SCOPED_CAPABILITY Unlocked {
public:
    explicit Unlocked(Lock& lock) RELEASE(lock_of<typename Lock::NamedAfter>) : lock_(lock) { lock.unlock(); }
    // To the compiler, it ends what the constructor did.
    ~Unlocked() RELEASE() NO_THREAD_SAFETY_ANALYSIS { lock_.lock(); }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

private:
    Lock& lock_;
};

template <>
class SCOPED_CAPABILITY Unlocked<Mutex> {
public:
    explicit Unlocked(Mutex& mutex) RELEASE(mutex) : mutex_(mutex) { mutex.unlock(); }
    ~Unlocked() RELEASE() NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }  // as above
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

private:
    Mutex& mutex_;
};

// ---- a lock that several threads may share

class CAPABILITY("shared mutex") SharedMutex {
public:
    SharedMutex() = default;
    SharedMutex(const SharedMutex&) = delete;
    SharedMutex& operator=(const SharedMutex&) = delete;

    void lock() ACQUIRE() { mutex_.lock(); }
    void unlock() RELEASE() { mutex_.unlock(); }
    void lock_shared() ACQUIRE_SHARED() { mutex_.lock_shared(); }
    void unlock_shared() RELEASE_SHARED() { mutex_.unlock_shared(); }

private:
    std::shared_mutex mutex_;
};

// Holds a shared mutex exclusively during its lifetime.
class SCOPED_CAPABILITY SoleLock {
public:
    explicit SoleLock(SharedMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
    ~SoleLock() RELEASE() { mutex_.unlock(); }
    SoleLock(const SoleLock&) = delete;
    SoleLock& operator=(const SoleLock&) = delete;

private:
    SharedMutex& mutex_;
};

// Holds a shared mutex during its lifetime, together with other SharedLocks.
class SCOPED_CAPABILITY SharedLock {
public:
    explicit SharedLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex.lock_shared(); }
    ~SharedLock() RELEASE() { mutex_.unlock_shared(); }
    SharedLock(const SharedLock&) = delete;
    SharedLock& operator=(const SharedLock&) = delete;

private:
    SharedMutex& mutex_;
};

}  // namespace rove
