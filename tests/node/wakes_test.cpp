// Who is woken by what: Wakes by itself.
#include "lead/wakes.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <list>
#include <thread>

#include "soon.hpp"

namespace rove::test {
namespace {

using std::chrono::milliseconds, std::chrono::seconds;

class WakesTest : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(wakes_.open({})); }
    void TearDown() override {
        tell([this] {
            wakes_.tell({.waiting = true});
            wakes_.tell_own();
        });
        for (std::thread& each : threads_) each.join();
    }
    // A thread that waits so, and counts itself in `told` when it is woken. It waits when this returns.
    void waits(std::atomic<int>& told, std::cv_status (Wakes::*await)(HeldLock&, Deadline)) {
        const int before = waiting_;
        threads_.emplace_back([this, &told, await] {
            Hold hold(mutex_);
            ++waiting_;
            (void)(wakes_.*await)(hold.lock(), std::nullopt);
            ++told;
        });
        // Whoever takes the lock from then on finds it waiting: it has the lock from counting itself to the wait.
        EXPECT_TRUE(soon([&] { return waiting_ > before; }));
    }
    template <typename How>
    void tell(const How& how) {
        const Hold hold(mutex_);
        how();
    }
    // Whether the leader's sleep would end at once: it is over before its deadline, which is far.
    bool is_kicked() {
        const TimePoint deadline = Clock::now() + milliseconds(30);
        (void)wakes_.sleep(deadline);
        return Clock::now() < deadline;
    }

    EngineLock mutex_;
    Wakes wakes_;
    std::atomic<int> waiting_{0}, changed_{0}, lead_{0}, end_{0};
    std::list<std::thread> threads_;
};

TEST_F(WakesTest, EachThreadIsToldOfWhatItWaitsFor) {
    waits(changed_, &Wakes::await_change);
    waits(lead_, &Wakes::await_lead);
    waits(end_, &Wakes::await_end);
    tell([this] { wakes_.tell({.waiting = true}); });
    EXPECT_TRUE(soon([this] { return changed_ == 1; }));
    EXPECT_EQ(lead_ + end_, 0);
    tell([this] { wakes_.tell({.follower = true}); });
    EXPECT_TRUE(soon([this] { return lead_ == 1; }));
    EXPECT_EQ(end_, 0);
    tell([this] { wakes_.tell({.standby = true}); });
    EXPECT_TRUE(soon([this] { return end_ == 1; }));
    waits(end_, &Wakes::await_end);
    tell([this] { wakes_.tell_own(); });
    EXPECT_TRUE(soon([this] { return end_ == 2; }));
}

TEST_F(WakesTest, AllThatWaitAreToldOfAChangeAndAllOwnThreadsOfTheEnd) {
    for (int i = 0; i < 3; ++i) waits(changed_, &Wakes::await_change);
    for (int i = 0; i < 3; ++i) waits(lead_, &Wakes::await_lead);
    tell([this] { wakes_.tell({.waiting = true}); });
    EXPECT_TRUE(soon([this] { return changed_ == 3; }));
    EXPECT_EQ(lead_, 0);
    tell([this] { wakes_.tell_own(); });
    EXPECT_TRUE(soon([this] { return lead_ == 3; }));
}

// A second one would look for a lead that is taken.
TEST_F(WakesTest, OneFollowerIsWokenForTheLead) {
    waits(lead_, &Wakes::await_lead);
    waits(lead_, &Wakes::await_lead);
    tell([this] { wakes_.tell({.follower = true}); });
    EXPECT_TRUE(soon([this] { return lead_ == 1; }));
    tell([this] { wakes_.tell({.waiting = true}); });  // nobody
    tell([this] { EXPECT_EQ(lead_, 1); });
    tell([this] { wakes_.tell({.follower = true}); });
    EXPECT_TRUE(soon([this] { return lead_ == 2; }));
}

TEST_F(WakesTest, TheWatchThatRestsIsToldOfTheLeaderAndOfTheLead) {
    const auto rests = [this] {
        waits(lead_, &Wakes::await_lead);  // another follower
        const int before = waiting_;
        threads_.emplace_back([this] {
            Hold hold(mutex_);
            ++waiting_;
            wakes_.await_lead_or_leader(hold.lock());
            ++changed_;
        });
        EXPECT_TRUE(soon([&] { return waiting_ > before; }));
    };
    rests();
    tell([this] { wakes_.tell({.watch = true}); });
    EXPECT_TRUE(soon([this] { return changed_ == 1; }));
    EXPECT_EQ(lead_, 0);
    rests();
    tell([this] { wakes_.tell({.follower = true}); });
    EXPECT_TRUE(soon([this] { return changed_ == 2; }));
    EXPECT_EQ(lead_, 0) << "one is enough";
    rests();
    tell([this] { wakes_.tell_own(); });
    EXPECT_TRUE(soon([this] { return changed_ == 3 && lead_ == 3; }));
}

TEST_F(WakesTest, TheSleeperIsKickedOnlyWhereItIsToldOrSleeps) {
    tell([this] { wakes_.tell({.waiting = true, .follower = true}); });
    wakes_.wake(/*leader_sleeps=*/false);
    EXPECT_FALSE(is_kicked()) << "each kick is a system call";
    tell([this] { wakes_.tell({.sleeper = true}); });
    EXPECT_TRUE(is_kicked());
    wakes_.wake(/*leader_sleeps=*/true);
    EXPECT_TRUE(is_kicked());
    wakes_.begin_work();
    wakes_.wake_unlocked();
    EXPECT_TRUE(is_kicked());
    wakes_.wake_unlocked();
    EXPECT_FALSE(is_kicked()) << "the first has ended its sleep";
    wakes_.begin_work();
    wakes_.wake(/*leader_sleeps=*/false);
    wakes_.wake_unlocked();
    EXPECT_FALSE(is_kicked()) << "it does not fall asleep over the other";
}

TEST_F(WakesTest, AWakeIsSeenUntilTheNextWorkBegins) {
    EXPECT_FALSE(wakes_.was_woken());
    for (const bool sleeps : {false, true}) {
        wakes_.wake(sleeps);
        EXPECT_TRUE(wakes_.was_woken());
        EXPECT_TRUE(wakes_.attention());
        wakes_.begin_work();
        EXPECT_FALSE(wakes_.was_woken());
    }
    tell([this] { wakes_.tell({.sleeper = true}); });
    EXPECT_FALSE(wakes_.was_woken()) << "it is told to go on, and nothing was changed for it";
}

TEST_F(WakesTest, AWaitEndsWithItsTimeAndAnInterruptIsSeenOnce) {
    Hold hold(mutex_);
    const TimePoint deadline = Clock::now() + milliseconds(10);
    EXPECT_EQ(wakes_.await_change(hold.lock(), deadline), std::cv_status::timeout);
    EXPECT_EQ(wakes_.await_lead(hold.lock(), deadline), std::cv_status::timeout);
    EXPECT_EQ(wakes_.await_end(hold.lock(), deadline), std::cv_status::timeout);
    EXPECT_FALSE(wakes_.take_interrupt());
    wakes_.interrupt();
    EXPECT_TRUE(wakes_.was_woken());
    EXPECT_TRUE(wakes_.take_interrupt());
    EXPECT_FALSE(wakes_.take_interrupt());
    EXPECT_EQ(wakes_.sleep(Clock::now() + seconds(20)),
              std::cv_status::no_timeout);  // the kick is still there: it returns
}

Wakes* in_handler = nullptr;
TEST_F(WakesTest, ASignalHandlerMayInterrupt) {
    in_handler = &wakes_;
    struct sigaction before{}, action{};
    action.sa_handler = [](int) { in_handler->interrupt(); };
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
    {
        const Hold hold(mutex_);  // which the thread may have had
        raise(SIGUSR1);
    }
    ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
    EXPECT_TRUE(wakes_.take_interrupt());
    EXPECT_TRUE(is_kicked());
}

}  // namespace
}  // namespace rove::test
