// The one lock of an engine. Short steps are taken under it, thousands of times between two that meet, so it is made for being
// free: taking it is one exchange, and letting go of it a plain store, which does not wait for the stores before it. (A mutex's
// release is a read-modify-write: after a frame has been written into the peer's memory it would wait until the line
// is here.) Who finds it taken spins a little, then yields, and at last sleeps for a moment at a time: a yield never gives the core to
// a thread of lower priority, which may be the one that has the lock.
//
// It is not fair, as a std::mutex is not: a busy leader takes it again at once. So whoever else wants it says so (`lock_soon`), and the
// leader lets them in between its steps.
#pragma once

#include <atomic>

#include "base/mutex.hpp"

namespace rove {

// To the compiler it is lock_of<EngineLock>, because parts of an engine refer to the one that their engine has (base/mutex.hpp). It stands for
// the lock of whichever engine is meant: the compiler cannot tell those of two engines apart, and no thread holds two.
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

    // lock(), in a way that a busy leader notices.
    void lock_soon() ACQUIRE(lock_of<EngineLock>) NO_THREAD_SAFETY_ANALYSIS;
    [[nodiscard]] bool is_wanted() const { return wanting_.load(std::memory_order_relaxed) > 0; }
    // Without the lock: until those who want it now have had it, however many come after them. Not for long: one of them may get no core
    // (an idle priority beside a busy thread, a debugger), and the node is everybody's.
    void let_in() EXCLUDES(lock_of<EngineLock>);

private:
    void wait();

    alignas(64) std::atomic<bool> taken_{false};
    alignas(64) std::atomic<unsigned> wanting_{0};  // threads that want it
    std::atomic<unsigned> had_{0};                  // of them, that have had it, ever
    std::atomic<unsigned> in_vain_at_{~0U};         // `had_` when they were last waited for in vain
};

// Tells the compiler that the lock is held, in a lambda that is called by a function which does not know of the lock.
inline void engine_lock_is_held() ASSERT_HELD(lock_of<EngineLock>) {}

// The lock in a thread that has it: for functions that let go of it in between. What such a function promises is REQUIRES(lock_of<EngineLock>).
class HeldLock {
public:
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
    // Lets go of the lock for those that want it now: between the steps of what would keep it for long.
    void let_others() REQUIRES(lock_of<EngineLock>) {
        if (!mutex_.is_wanted()) return;
        unlock();
        mutex_.let_in();
        lock();
    }

    // Lets go of the lock during its lifetime, also where what is done then throws.
    class SCOPED_CAPABILITY Released {
    public:
        explicit Released(HeldLock& held) RELEASE(lock_of<EngineLock>) NO_THREAD_SAFETY_ANALYSIS : held_(held) {
            held.unlock();
        }
        ~Released() RELEASE() NO_THREAD_SAFETY_ANALYSIS { held_.lock(); }  // as ~Unlocked (base/mutex.hpp)
        Released(const Released&) = delete;
        Released& operator=(const Released&) = delete;

    private:
        HeldLock& held_;
    };

private:
    friend class Hold;
    EngineLock& mutex_;
    bool owns_ = false;
};

// Holds the lock during its lifetime, except while HeldLock lets go of it. Taken in a way that a busy leader notices.
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
