// The one lock of an engine. It protects short steps, and is mostly free when it is taken, so that case is made cheap: taking it is one
// exchange, and releasing it a plain store, which does not wait for the stores before it. (A mutex's release is a read-modify-write: after
// a frame has been written into the peer's memory it would wait until that line is in this core's cache.) A thread that finds it taken
// spins briefly, then yields, and at last sleeps 50 us at a time, because a yield never gives the core to a thread of lower priority, which
// may be the one that holds the lock.
//
// Like std::mutex, it is not fair: a busy leader takes it again at once. So any other thread announces that it wants the lock
// (`lock_soon`), and the leader lets those threads in between its steps.
//
// Threads: any. Invariants: one thread holds it at a time, once, and no thread holds the locks of two engines. HeldLock::owns_lock() is true
// exactly while its thread holds the lock.
#pragma once

#include <atomic>

#include "base/mutex.hpp"

namespace rove {

// To the compiler it is lock_of<EngineLock>, because parts of an engine refer to the lock that their engine has (base/mutex.hpp). That name
// means the lock of any engine: the compiler cannot distinguish those of two engines, and no thread holds two.
class EngineLock {
public:
    void lock() ACQUIRE(lock_of<EngineLock>) NO_THREAD_SAFETY_ANALYSIS {
        if (!try_lock()) wait();
    }
    [[nodiscard]] bool try_lock() TRY_ACQUIRE(true, lock_of<EngineLock>) NO_THREAD_SAFETY_ANALYSIS {
        return !taken_.exchange(true, std::memory_order_acquire);
    }
    void unlock() RELEASE(lock_of<EngineLock>) NO_THREAD_SAFETY_ANALYSIS {
        taken_.store(false, std::memory_order_release);
    }

    // lock(), announced to a busy leader.
    void lock_soon() ACQUIRE(lock_of<EngineLock>) NO_THREAD_SAFETY_ANALYSIS;
    [[nodiscard]] bool is_wanted() const { return wanting_.load(std::memory_order_relaxed) > 0; }
    // Waits until the threads that want the lock now have had it, but not for threads that want it later. At most 200 us: one of them may
    // get no core (an idle priority beside a busy thread, a debugger), and the other users of the node must not wait for that.
    void let_in() EXCLUDES(lock_of<EngineLock>);

private:
    void wait();

    alignas(64) std::atomic<bool> taken_{false};
    alignas(64) std::atomic<unsigned> wanting_{0};  // threads that want it
    std::atomic<unsigned> had_{0};                  // how many of them have had it, ever
    std::atomic<unsigned> in_vain_at_{~0U};         // `had_` when let_in() last ran out of time
};

// Tells the compiler that the lock is held, in a lambda that is called by a function whose declaration does not mention the lock.
inline void engine_lock_is_held() ASSERT_HELD(lock_of<EngineLock>) {}

// The lock, as the thread that holds it passes it to functions that release it temporarily. Such a function REQUIRES(lock_of<EngineLock>).
class HeldLock {
public:
    using NamedAfter = EngineLock;  // for Unlocked
    explicit HeldLock(EngineLock& mutex) : mutex_(mutex) {}
    HeldLock(const HeldLock&) = delete;
    HeldLock& operator=(const HeldLock&) = delete;

    void lock() ACQUIRE(lock_of<EngineLock>) NO_THREAD_SAFETY_ANALYSIS {
        mutex_.lock();
        owns_ = true;
    }
    void unlock() RELEASE(lock_of<EngineLock>) NO_THREAD_SAFETY_ANALYSIS {
        owns_ = false;
        mutex_.unlock();
    }
    [[nodiscard]] bool owns_lock() const { return owns_; }
    // Releases the lock to threads that want it now. Called between the steps of work that would keep it for long.
    void let_others() REQUIRES(lock_of<EngineLock>) {
        if (!mutex_.is_wanted()) return;
        unlock();
        mutex_.let_in();
        lock();
    }

private:
    friend class Hold;
    EngineLock& mutex_;
    bool owns_ = false;
};

// Holds the lock during its lifetime, except while HeldLock releases it. Announced to a busy leader.
class SCOPED_CAPABILITY Hold {
public:
    explicit Hold(EngineLock& mutex) ACQUIRE(lock_of<EngineLock>) NO_THREAD_SAFETY_ANALYSIS : held_(mutex) {
        if (!mutex.try_lock()) mutex.lock_soon();
        held_.owns_ = true;
    }
    ~Hold() RELEASE() NO_THREAD_SAFETY_ANALYSIS {
        if (held_.owns_) held_.unlock();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    [[nodiscard]] HeldLock& lock() { return held_; }

private:
    HeldLock held_;
};

}  // namespace rove
