// The node's one lock. Short steps are taken under it, thousands of times between two that meet, so it is made for being
// free: taking it is one exchange, and letting go of it a plain store, which does not wait for the stores before it. (A mutex's
// release is a read-modify-write: after a frame has been written into the peer's memory it would wait until the line
// is here.) Who finds it taken spins a little, then yields, and at last sleeps for a moment at a time: a yield never gives the core to
// a thread of lower priority, which may be the one that has the lock.
//
// It is not fair, as a std::mutex is not: a busy leader takes it again at once. So whoever else wants it says so (`lock_soon`), and the
// leader lets them in between its steps.
#pragma once

#include <atomic>
#include <mutex>

namespace rove {

class NodeLock {
public:
    void lock() {
        if (!try_lock()) wait();
    }
    [[nodiscard]] bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
    void unlock() { taken_.store(false, std::memory_order_release); }

    // As lock(), in a way that a busy leader notices.
    void lock_soon();
    [[nodiscard]] bool is_wanted() const { return wanting_.load(std::memory_order_relaxed) > 0; }
    // Without the lock: until those who want it now have had it, however many come after them. Not for long: one of them may get no core
    // (an idle priority beside a busy thread, a debugger), and the node is everybody's.
    void let_in();

private:
    void wait();

    alignas(64) std::atomic<bool> taken_{false};
    alignas(64) std::atomic<unsigned> wanting_{0};  // threads that want it
    std::atomic<unsigned> had_{0};                  // of them, that have had it, ever
    std::atomic<unsigned> in_vain_at_{~0U};         // `had_` when they were last waited for in vain
};

// The lock, taken in a way that a busy leader notices, for as long as this lives.
class Hold {
public:
    explicit Hold(NodeLock& mutex) : lock_(mutex, std::try_to_lock) {
        if (lock_.owns_lock()) return;
        mutex.lock_soon();
        lock_ = std::unique_lock(mutex, std::adopt_lock);
    }
    [[nodiscard]] std::unique_lock<NodeLock>& lock() { return lock_; }

private:
    std::unique_lock<NodeLock> lock_;
};

}  // namespace rove
