// How a leader waits that has nothing to do: Idling alone.
#include "lead/idling.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "no_fabric.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using std::chrono::milliseconds;

class IdlingTest : public testing::Test, protected LeadDuties {
protected:
    // One step of a leader's turn in which so much was done, with this long until its deadline. Gives how long that took.
    Clock::duration step(unsigned handled, milliseconds time, Waiting waiting = Waiting::frugal) {
        Hold hold(mutex_);
        idling_.open(fabric_, waiting);
        LeadTurn turn{.lock = hold.lock(), .baton = {.own = false}, .in_vain_since = in_vain_since_};
        wakes_.tell(baton_.take(turn.baton));
        baton_.begin_step(turn.baton);
        const TimePoint begin = Clock::now();
        idling_.after(handled, turn, begin + time);
        const Clock::duration took = Clock::now() - begin;
        in_vain_since_ = turn.in_vain_since;
        wakes_.tell(baton_.give(turn.baton));
        return took;
    }

    LeadRest rest_;
    bool waits_for_room_ = false;
    std::optional<TimePoint> in_vain_since_;
    unsigned woke_up_ = 0;
    NoFabric fabric_;
    EngineLock mutex_;
    Baton baton_;
    Wakes wakes_;
    Idling idling_{*this, mutex_, baton_, wakes_};

private:
    void SetUp() override { ASSERT_TRUE(wakes_.open(fabric_.descriptors())); }
    unsigned work(LeadTurn& /*turn*/) override { return 0; }
    void await_signals(LeadTurn& turn) noexcept override { turn.drop_awaited(); }
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

TEST_F(IdlingTest, AfterASleepInVainItSleepsAgainAtOnce) {
    fabric_.is_asked = true;
    const auto looks = [this](unsigned handled, Waiting waiting) {
        const int before = fabric_.looks;
        (void)step(handled, milliseconds(20), waiting);
        return fabric_.looks - before;
    };
    for (const Waiting waiting : {Waiting::frugal, Waiting::balanced}) {
        // A thread that is descheduled for all of its time neither looks nor sleeps.
        EXPECT_TRUE(soon([&] {
            (void)looks(1, waiting);
            return looks(0, waiting) > 0 && looks(0, waiting) == 0;
        })) << "it looks where something may come soon, and not where nothing has come";
        std::thread other([this] {
            EXPECT_TRUE(soon([this] {
                const Hold hold(mutex_);
                return baton_.leader_sleeps();
            }));
            wakes_.wake_unlocked();
        });
        (void)step(0, std::chrono::seconds(20), waiting);
        other.join();
        wakes_.begin_work();
        EXPECT_GT(looks(0, waiting), 0) << "somebody has ended the sleep";
        (void)looks(1, waiting);
    }
}

TEST_F(IdlingTest, WhereNothingHasHappenedForLongItSleepsForLong) {
    const auto sleeps_for_long = [this](milliseconds in_vain, milliseconds until_due) {
        in_vain_since_ = Clock::now() - in_vain;
        rest_.until = Clock::now() + until_due;
        std::atomic<bool> is_long{false};
        std::thread other([this, &is_long] {
            EXPECT_TRUE(soon([&] {
                const Hold hold(mutex_);
                is_long = baton_.rest_watch();
                return baton_.leader_sleeps();
            }));
            wakes_.wake_unlocked();
        });
        (void)step(0, std::chrono::seconds(20));
        other.join();
        wakes_.begin_work();
        return is_long.load();
    };
    EXPECT_TRUE(sleeps_for_long(2 * kIdleAfter, 10 * kIdleAfter));
    EXPECT_FALSE(sleeps_for_long(milliseconds(1), 10 * kIdleAfter)) << "it has not been idle for long";
    EXPECT_FALSE(sleeps_for_long(2 * kIdleAfter, milliseconds(500))) << "it has something to do soon";
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
    EXPECT_EQ(fabric_.sleeps, slept) << "another frame waits: it looks as often again";
}

}  // namespace
}  // namespace rove::test
