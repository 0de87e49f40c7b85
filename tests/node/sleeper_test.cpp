// What ends a sleep, and what does not: Sleeper by itself.
#include "lead/sleeper.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "soon.hpp"

namespace rove::test {
namespace {

using std::chrono::milliseconds, std::chrono::microseconds, std::chrono::seconds;

class SleeperTest : public testing::Test {
protected:
    void SetUp() override { ASSERT_EQ(pipe2(pipe_, O_CLOEXEC), 0); }
    void TearDown() override {
        for (const int each : pipe_) close(each);
    }
    [[nodiscard]] int reads() const { return pipe_[0]; }
    void write_one() const { ASSERT_EQ(write(pipe_[1], "x", 1), 1); }
    // Whether a sleep ends before that time is over.
    static bool ends_early(Sleeper& sleeper, Duration time = milliseconds(30)) {
        const TimePoint deadline = Clock::now() + time;
        sleeper.sleep(deadline);
        return Clock::now() < deadline;
    }
    static long descriptors() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

private:
    int pipe_[2] = {-1, -1};
};

// Not a part of a millisecond early: who asked for that time would sleep again and again for what is left of it.
TEST_F(SleeperTest, SleepsUntilItsDeadlineAndNotBeyondOneThatHasPassed) {
    Sleeper sleeper;
    ASSERT_TRUE(sleeper.open({reads()}));
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(ends_early(sleeper, microseconds(300)));
    sleeper.sleep(Clock::now() - seconds(1));  // a negative time would be for ever
    sleeper.sleep(TimePoint());
}

TEST_F(SleeperTest, AKickEndsTheNextSleepAndNoOther) {
    Sleeper sleeper;
    ASSERT_TRUE(sleeper.open({reads()}));
    for (int i = 0; i < 3; ++i) sleeper.kick();
    EXPECT_TRUE(ends_early(sleeper, seconds(20)));
    EXPECT_FALSE(ends_early(sleeper)) << "the others were forgotten with it";
    sleeper.kick();
    EXPECT_TRUE(ends_early(sleeper, seconds(20)));
}

TEST_F(SleeperTest, AKickEndsASleepWithoutADeadline) {
    Sleeper sleeper;
    ASSERT_TRUE(sleeper.open({reads()}));
    std::atomic<bool> awake{false};
    std::thread sleeps([&] {
        sleeper.sleep(std::nullopt);
        awake = true;
    });
    sleeper.kick();
    EXPECT_TRUE(soon([&] { return awake.load(); }));
    sleeps.join();
}

TEST_F(SleeperTest, ADescriptorEndsSleepsUntilItIsRead) {
    Sleeper sleeper;
    ASSERT_TRUE(sleeper.open({reads()}));
    write_one();
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(ends_early(sleeper, seconds(20)));
    sleeper.kick();  // beside it: both are seen in one sleep, and the kick is forgotten
    EXPECT_TRUE(ends_early(sleeper, seconds(20)));
    char byte = 0;
    ASSERT_EQ(read(reads(), &byte, 1), 1);
    EXPECT_FALSE(ends_early(sleeper));
}

TEST_F(SleeperTest, WhatCannotBeWatchedIsSaid) {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);  // epoll takes no files
    const Status opened = Sleeper().open({reads(), file});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), ErrorCode::internal);
    close(file);
}

TEST_F(SleeperTest, WithoutDescriptorsItIsOverloadedAndLeavesNone) {
    const long before = descriptors();
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit old = limit;
    // One more than there are: the second that it needs is missing.
    limit.rlim_cur = static_cast<rlim_t>(dup(reads()));
    close(static_cast<int>(limit.rlim_cur++));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const Status opened = Sleeper().open({});
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), ErrorCode::overloaded);
    EXPECT_NE(opened.error().message().find("ulimit -n"), std::string::npos) << opened.error().message();
    EXPECT_EQ(descriptors(), before);
}

}  // namespace
}  // namespace rove::test
