// The node's one lock. Short steps are taken under it, thousands of times between two that meet, so it is made for being
// free: taking it is one exchange, and letting go of it a plain store, which does not wait for the stores before it. (A mutex's
// release is a read-modify-write: after a frame has been written into the peer's memory it would wait until the line
// is here.) Who finds it taken spins a little and yields then.
#pragma once

#include <sched.h>

#include <atomic>

namespace rove {

class NodeLock {
public:
    void lock() {
        if (!try_lock()) wait();
    }
    [[nodiscard]] bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
    void unlock() { taken_.store(false, std::memory_order_release); }

private:
    void wait() {
        constexpr unsigned kLooks = 100;
        for (unsigned looks = 0;; ++looks) {
            if (!taken_.load(std::memory_order_relaxed) && try_lock()) return;
            if (looks >= kLooks) sched_yield();
        }
    }
    alignas(64) std::atomic<bool> taken_{false};
};

}  // namespace rove
