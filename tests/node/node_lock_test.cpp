// The node's lock: nobody waits without end for somebody who wants it and gets no core.
#include "node/node_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "base/clock.hpp"

namespace rove::test {
namespace {

TEST(NodeLock, WhoWantsItAndGetsNoCoreIsNotWaitedForWithoutEnd) {
    NodeLock lock;
    std::unique_lock held(lock);  // so that it cannot be taken, as by a thread without a core
    std::thread wants([&lock] {
        lock.lock_soon();
        lock.unlock();
    });
    while (!lock.is_wanted()) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) lock.let_in();
    EXPECT_TRUE(lock.is_wanted());
    held.unlock();
    wants.join();
    EXPECT_FALSE(lock.is_wanted());
}

// It sleeps at last: this thread has the lock, and may be one that a yield gives no core to.
TEST(NodeLock, WhoWaitsForLongSleeps) {
    NodeLock lock;
    std::unique_lock held(lock);
    std::atomic<Duration> used{};
    std::thread waits([&] {
        lock.lock();
        lock.unlock();
        timespec of_thread{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &of_thread);
        used = std::chrono::seconds(of_thread.tv_sec) + std::chrono::nanoseconds(of_thread.tv_nsec);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    held.unlock();
    waits.join();
    EXPECT_LT(used.load(), std::chrono::milliseconds(250));
}

}  // namespace
}  // namespace rove::test
