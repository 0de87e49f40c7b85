// How a leader waits that has nothing to do, and how threads are woken: Idling and Wakes by themselves.
#include "lead/idling.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "no_fabric.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using std::chrono::milliseconds;

class IdlingTest : public testing::Test, protected LeadDuties {
protected:
    // One step in which so much was done, as a leader's, with this long until its deadline. Gives how long that took.
    Clock::duration step(unsigned handled, milliseconds time, Waiting waiting = Waiting::frugal) {
        Hold hold(mutex_);
        idling_.open(fabric_, waiting);
        LeadTurn turn{.lock = hold.lock(), .baton = {.own = false}};
        wakes_.tell(baton_.take(turn.baton));
        baton_.begin_step(turn.baton);
        const TimePoint begin = Clock::now();
        idling_.after(handled, turn, begin + time);
        const Clock::duration took = Clock::now() - begin;
        wakes_.tell(baton_.give(turn.baton));
        return took;
    }

    LeadRest rest_;
    bool waits_for_room_ = false;
    unsigned woke_up_ = 0;
    NoFabric fabric_;
    EngineLock mutex_;
    Baton baton_;
    Wakes wakes_;
    Idling idling_{*this, mutex_, baton_, wakes_};

private:
    void SetUp() override { ASSERT_TRUE(wakes_.open(fabric_.descriptors())); }
    unsigned work(LeadTurn& /*turn*/) override { return 0; }
    void watch(LeadTurn& turn) noexcept override { turn.watch.clear(); }
    [[nodiscard]] bool waits_for_room() const override { return waits_for_room_; }
    [[nodiscard]] LeadRest rest(const LeadTurn& /*turn*/) override { return rest_; }
    void woke_up() override { ++woke_up_; }
    [[nodiscard]] bool runs_function() const override { return false; }
    void take_function_away() noexcept override {}
    void follower_came() override {}
};

TEST_F(IdlingTest, ABusyLeaderDoesNotWait) {
    EXPECT_LT(step(1, std::chrono::seconds(20)), std::chrono::seconds(10));
    EXPECT_EQ(fabric_.sleeps, 0);
    EXPECT_EQ(idling_.steps_in_vain(), 0U);
}

TEST_F(IdlingTest, SleepsUntilTheDeadline) {
    EXPECT_GE(step(0, milliseconds(20)), milliseconds(20));
    EXPECT_EQ(fabric_.sleeps, 1);
    EXPECT_EQ(woke_up_, 1U);
    EXPECT_EQ(idling_.steps_in_vain(), 1U);
}

TEST_F(IdlingTest, SleepsNoLongerThanItsDutiesAllow) {
    rest_.until = Clock::now() + milliseconds(10);
    EXPECT_LT(step(0, std::chrono::seconds(20)), std::chrono::seconds(10));
    rest_ = {.restless = true};
    EXPECT_LT(step(0, std::chrono::seconds(20)), std::chrono::seconds(10));
    rest_ = {.pending = true};
    EXPECT_LT(step(0, std::chrono::seconds(20)), std::chrono::seconds(10));
    EXPECT_EQ(fabric_.sleeps, 3) << "each was announced, so that nothing that arrives is missed";
    EXPECT_EQ(woke_up_, 3U);
}

TEST_F(IdlingTest, WhatIsChangedBeforeItSleepsKeepsItAwake) {
    wakes_.wake(/*leader_sleeps=*/false);
    EXPECT_LT(step(0, std::chrono::seconds(20)), std::chrono::seconds(10));
    wakes_.begin_work();
    EXPECT_FALSE(wakes_.was_woken());
    EXPECT_GE(step(0, milliseconds(20)), milliseconds(20)) << "that was before its work";
}

TEST_F(IdlingTest, AKickEndsItsSleep) {
    std::thread other([this] {
        EXPECT_TRUE(soon([this] { return fabric_.sleeps > 0; }));
        wakes_.wake_unlocked();
    });
    EXPECT_LT(step(0, std::chrono::seconds(20)), std::chrono::seconds(10));
    other.join();
}

TEST_F(IdlingTest, ForLatencyItNeverSleeps) {
    (void)step(0, milliseconds(1), Waiting::latency);
    EXPECT_EQ(fabric_.sleeps, 0);
}

TEST_F(IdlingTest, WhereFramesWaitForRoomItLooksAgainAtOnceSoOften) {
    waits_for_room_ = true;
    unsigned looks = 0;
    while (fabric_.sleeps == 0 && looks < 10'000) {
        (void)step(0, std::chrono::seconds(20));
        rest_.pending = true;
        ++looks;
    }
    EXPECT_GT(looks, 100U);
    EXPECT_LT(looks, 10'000U) << "in the end it sleeps";
    const int slept = fabric_.sleeps;
    {
        const Hold hold(mutex_);
        idling_.expect_room();
    }
    (void)step(0, std::chrono::seconds(20));
    EXPECT_EQ(fabric_.sleeps, slept) << "another frame waits: the looks begin anew";
}

TEST(WakesTest, EachThreadIsToldOfWhatItWaitsFor) {
    EngineLock mutex;
    Wakes wakes;
    ASSERT_TRUE(wakes.open({}));
    std::atomic<int> waiting{0}, changed{0}, lead{0}, end{0};
    const auto wait = [&](std::atomic<int>& told, auto await) {
        return std::thread([&, await] {
            Hold hold(mutex);
            ++waiting;
            (void)(wakes.*await)(hold.lock(), std::nullopt);
            ++told;
        });
    };
    std::thread threads[] = {wait(changed, &Wakes::await_change), wait(lead, &Wakes::await_lead),
                             wait(end, &Wakes::await_end)};
    EXPECT_TRUE(soon([&] { return waiting == 3; }));
    const auto tell = [&](const auto& how) {
        const Hold hold(mutex);
        how();
    };
    tell([&] { wakes.tell({.waiting = true}); });
    EXPECT_TRUE(soon([&] { return changed == 1; }));
    EXPECT_EQ(lead + end, 0);
    tell([&] { wakes.tell({.follower = true}); });
    EXPECT_TRUE(soon([&] { return lead == 1; }));
    EXPECT_EQ(end, 0);
    tell([&] { wakes.tell_own(); });
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(end, 1);
}

TEST(WakesTest, AWaitEndsWithItsTimeAndAnInterruptIsSeenOnce) {
    EngineLock mutex;
    Wakes wakes;
    ASSERT_TRUE(wakes.open({}));
    Hold hold(mutex);
    EXPECT_EQ(wakes.await_change(hold.lock(), Clock::now() + milliseconds(10)), std::cv_status::timeout);
    wakes.interrupt();
    EXPECT_TRUE(wakes.was_woken());
    EXPECT_TRUE(wakes.was_interrupted());
    EXPECT_FALSE(wakes.was_interrupted());
    wakes.sleep(Clock::now() + std::chrono::seconds(20));  // the kick is still there: it returns
}

}  // namespace
}  // namespace rove::test
