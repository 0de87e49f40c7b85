// The engine's lock, by itself.
#include "lead/engine_lock.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <fstream>
#include <iterator>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "soon.hpp"

// The lock is taken by the test, for lambdas that do not say so.
#pragma clang diagnostic ignored "-Wthread-safety"

namespace rove::test {
namespace {

// Whichever way it is taken, until it has gone from one thread to another that often.
TEST(EngineLock, OneThreadHasItAtATime) {
    constexpr unsigned kThreads = 4, kPassedOn = 20'000, kTimesMax = 20'000'000;
    EngineLock lock;
    std::barrier begin(kThreads);
    std::atomic<unsigned> within{0}, together{0};
    std::array<unsigned long, kThreads> times{};
    unsigned long counted = 0, passed_on = 0;  // nothing but the lock keeps them whole
    unsigned last = 0;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            begin.arrive_and_wait();
            for (bool done = false; !done && times[t] < kTimesMax; ++times[t]) {
                const unsigned long way = (times[t] + t) % 3;
                if (way == 0) lock.lock();
                if (way == 1) lock.lock_soon();
                if (way == 2)
                    while (!lock.try_lock()) continue;
                if (within.fetch_add(1, std::memory_order_relaxed) > 0) ++together;
                ++counted;
                passed_on += std::exchange(last, t) == t ? 0 : 1;
                done = passed_on >= kPassedOn;
                within.fetch_sub(1, std::memory_order_relaxed);
                lock.unlock();
                if (times[t] % 256 == 0) std::this_thread::yield();
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(together, 0U);
    EXPECT_EQ(counted, std::accumulate(times.begin(), times.end(), 0UL));
    EXPECT_FALSE(lock.is_wanted());
}

TEST(EngineLock, OneThatIsTakenIsRefused) {
    EngineLock lock;
    ASSERT_TRUE(lock.try_lock());
    std::thread other([&lock] { EXPECT_FALSE(lock.try_lock()); });
    other.join();
    lock.unlock();
    ASSERT_TRUE(lock.try_lock());
    lock.unlock();
}

// Threads that say that they want a leader's lock, beside the leader.
class WhoWantsTheLock : public testing::Test {
protected:
    // They want it again as soon as they have had it.
    void start(unsigned count) {
        for (unsigned i = 0; i < count; ++i)
            threads_.emplace_back([this] {
                while (!stop_) {
                    lock_.lock_soon();
                    had_.fetch_add(1, std::memory_order_relaxed);
                    lock_.unlock();
                }
            });
    }
    void TearDown() override {
        stop_ = true;
        for (std::thread& thread : threads_) thread.join();
    }
    // A leader's step: how often others had the lock while they were let in.
    unsigned long step() {
        lock_.lock();
        while (!lock_.is_wanted()) std::this_thread::yield();
        const unsigned long before = had_.load(std::memory_order_relaxed);
        lock_.unlock();
        lock_.let_in();
        return had_.load(std::memory_order_relaxed) - before;
    }

    EngineLock lock_;
    std::atomic<unsigned long> had_{0};
    std::atomic<bool> stop_{false};
    std::vector<std::thread> threads_;
};

// Not at each step, because who wants it may have no core; but one that is not let in never gets it in the moment between two steps.
TEST_F(WhoWantsTheLock, IsLetIn) {
    constexpr unsigned kSteps = 400;
    start(2);
    unsigned let_in = 0;
    for (unsigned i = 0; i < kSteps; ++i) let_in += step() > 0 ? 1 : 0;
    RecordProperty("let_in", static_cast<int>(let_in));
    EXPECT_GT(let_in, 0U);
}

TEST(EngineLock, NobodyIsLetInWhereNobodyWantsIt) {
    EngineLock lock;
    lock.let_in();
    EXPECT_FALSE(lock.is_wanted());
    const std::unique_lock held(lock);
    lock.let_in();  // who has it has not said that it wants it
    EXPECT_FALSE(lock.is_wanted());
}

TEST(EngineLock, WhoWantsItAndGetsNoCoreIsNotWaitedForWithoutEnd) {
    EngineLock lock;
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
TEST(EngineLock, WhoWaitsForLongSleeps) {
    EngineLock lock;
    std::unique_lock held(lock);
    std::atomic<pid_t> asks{0};
    std::thread waits([&] {
        asks = gettid();
        lock.lock();
        lock.unlock();
    });
    EXPECT_TRUE(soon([&] { return asks != 0; }));
    EXPECT_TRUE(soon([&] {
        std::ifstream stat("/proc/self/task/" + std::to_string(asks) + "/stat");
        const std::string all(std::istreambuf_iterator<char>(stat), {});
        return all.find(") S ") != std::string::npos;
    })) << "it has never slept";
    held.unlock();
    waits.join();
}

}  // namespace
}  // namespace rove::test
