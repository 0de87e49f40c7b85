// CacheLock by itself: work and callbacks with the lock free, what they throw, and what the end of the cache makes of them.
#include "code/cache_lock.hpp"

#include <gtest/gtest.h>

#include <future>
#include <new>
#include <stdexcept>

#include "cache_parts.hpp"

namespace rove::code {
namespace {

class CacheLockTest : public PartsTest {
protected:
    std::unique_ptr<PackageCode> package_ = package("sum", 10);
};

TEST_F(CacheLockTest, WorkIsDoneWithTheLockFree) {
    const LockOf lock(mutex_);
    const Result<int> done = lock_.unlocked(*package_, [this]() -> Result<int> {
        const LockOf held(mutex_);
        return 7;
    });
    EXPECT_EQ(done, 7);
}

TEST_F(CacheLockTest, WhatWorkThrowsIsAnError) {
    const LockOf lock(mutex_);
    const auto fails = [](const auto& thrown) { return [&thrown]() -> Status { throw thrown; }; };
    const std::range_error other("it is too far");
    const std::bad_alloc memory;
    for (const Status& each : {lock_.or_error(*package_, fails(other)), lock_.unlocked(*package_, fails(other))}) {
        ASSERT_FALSE(each);
        EXPECT_EQ(each.error().code(), ErrorCode::failed);
        EXPECT_EQ(each.error().message(), "package sum cannot be loaded on node 7: it is too far");
    }
    for (const Status& each : {lock_.or_error(*package_, fails(memory)), lock_.unlocked(*package_, fails(memory))}) {
        ASSERT_FALSE(each);
        EXPECT_EQ(each.error().code(), ErrorCode::overloaded);
        EXPECT_EQ(each.error().message(), "node 7 has no memory to load package sum; call it later");
    }
}

TEST_F(CacheLockTest, WorkEndsAsCancelledWhereTheCacheHasStoppedMeanwhile) {
    const LockOf lock(mutex_);
    bool is_done = false;
    const Status done = lock_.unlocked(*package_, [&]() -> Status {
        const LockOf held(mutex_);
        lock_.stop();
        is_done = true;
        return {};
    });
    EXPECT_TRUE(is_done);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::cancelled);
    EXPECT_EQ(done.error().message(), "node 7 stopped while it was loaded");
}

TEST_F(CacheLockTest, NothingIsCalledBackOnceTheCacheHasStopped) {
    const LockOf lock(mutex_);
    int calls = 0;
    const auto call = [&] {
        const LockOf held(mutex_);  // it is free
        ++calls;
    };
    lock_.call_back(call);
    EXPECT_EQ(calls, 1);
    lock_.stop();
    EXPECT_TRUE(lock_.has_stopped());
    lock_.call_back(call);
    EXPECT_EQ(calls, 1);
}

TEST_F(CacheLockTest, WhoWaitsForCallbacksWaitsForTheirEnd) {
    std::promise<void> begun, word;
    bool ended = false;
    const std::future<void> calls = std::async(std::launch::async, [&] {
        const LockOf lock(mutex_);
        lock_.call_back([&] {
            begun.set_value();
            word.get_future().wait();
            const LockOf held(mutex_);  // not before the other thread waits
            ended = true;
        });
    });
    begun.get_future().wait();
    const LockOf lock(mutex_);
    word.set_value();
    lock_.wait_for_callbacks();
    EXPECT_TRUE(ended);
    const Unlocked free(mutex_);
    calls.wait();
}

}  // namespace
}  // namespace rove::code
