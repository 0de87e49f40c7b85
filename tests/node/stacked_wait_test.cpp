// Waits of one thread on top of one another: StackedWait by itself.
#include "lead/stacked_wait.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "idle_lead.hpp"

namespace rove::test {
namespace {

// What a wait beneath says of itself, and how often it was asked.
struct Over {
    bool is_over = false;
    mutable unsigned asked = 0;
    [[nodiscard]] bool operator()() const {
        ++asked;
        return is_over;
    }
};

class StackedWaitTest : public testing::Test {
protected:
    // How long it took until it held one up; nothing: it never did.
    static std::optional<Duration> held_up_after(StackedWait& wait) {
        const TimePoint begin = Clock::now();
        while (!wait.holds_up())
            if (Clock::now() > begin + std::chrono::seconds(20)) return std::nullopt;
        return Clock::now() - begin;
    }
    // In several times what that takes, and at that many looks.
    static bool holds_up_nobody(StackedWait& wait) {
        for (auto i = 0 * kHeldUpMax; i < 3 * kHeldUpMax; ++i) {
            if (wait.holds_up()) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return true;
    }

    IdleLead idle_, other_;
    Hold hold_{idle_.lead.mutex()};
    const Runner &here_ = idle_.runner, &elsewhere_ = other_.runner;
    Over lower_over_, upper_over_;
};

TEST_F(StackedWaitTest, OneAloneHoldsUpNobody) {
    lower_over_.is_over = true;
    StackedWait lower(here_, lower_over_);
    EXPECT_TRUE(holds_up_nobody(lower));
    EXPECT_EQ(lower_over_.asked, 0U) << "it asks only those beneath it";
}

TEST_F(StackedWaitTest, OneOnTopHoldsUpWhatHasBeenOverForSomeTime) {
    StackedWait lower(here_, lower_over_), upper(here_, upper_over_);
    EXPECT_TRUE(holds_up_nobody(upper)) << "what is beneath it still waits";
    lower_over_.is_over = true;
    const auto after = held_up_after(upper);
    ASSERT_TRUE(after);
    EXPECT_GE(*after, kHeldUpMax);
    EXPECT_FALSE(lower.holds_up());
    EXPECT_EQ(upper_over_.asked, 0U);
}

TEST_F(StackedWaitTest, ItLooksOnceAMillisecondAndSaysMeanwhileWhatItSaw) {
    StackedWait lower(here_, lower_over_), upper(here_, upper_over_);
    const TimePoint begin = Clock::now();
    for (int i = 0; i < 100'000; ++i) EXPECT_FALSE(upper.holds_up());
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    EXPECT_LE(lower_over_.asked, static_cast<unsigned>(passed.count()) + 1);
    EXPECT_GE(lower_over_.asked, 1U);
}

// Its call has ended, and another one that it waits for has not.
TEST_F(StackedWaitTest, OneThatWaitsAgainIsHeldUpFromItsNextEndOn) {
    StackedWait lower(here_, lower_over_), upper(here_, upper_over_);
    lower_over_.is_over = true;
    ASSERT_TRUE(held_up_after(upper));
    lower_over_.is_over = false;
    while (upper.holds_up()) continue;  // until its next look
    lower_over_.is_over = true;
    const auto after = held_up_after(upper);
    ASSERT_TRUE(after);
    EXPECT_GE(*after, kHeldUpMax);
}

TEST_F(StackedWaitTest, AnyOfThoseBeneathCounts) {
    StackedWait lowest(here_, lower_over_);
    const Over waits;
    StackedWait middle(here_, waits), upper(here_, upper_over_);
    lower_over_.is_over = true;
    EXPECT_TRUE(held_up_after(upper));
    EXPECT_GT(waits.asked, 0U);
}

// Its lock is another one, which this thread has not.
TEST_F(StackedWaitTest, OneOnAnotherNodeIsNotAskedAndIsNotHeldUp) {
    const Over lowest_over;
    StackedWait lowest(here_, lowest_over), lower(elsewhere_, lower_over_), upper(here_, upper_over_);
    lower_over_.is_over = true;
    EXPECT_TRUE(holds_up_nobody(upper));
    EXPECT_EQ(lower_over_.asked, 0U);
    EXPECT_GT(lowest_over.asked, 0U) << "and it hides nobody on this one";
}

// Otherwise a new wait would always be given its time first, and they may come faster than upper ones end.
TEST_F(StackedWaitTest, ANewOneHoldsUpWhatTheOneBeneathItDoes) {
    StackedWait lower(here_, lower_over_), upper(here_, upper_over_);
    lower_over_.is_over = true;
    ASSERT_TRUE(held_up_after(upper));
    const Over top_over;
    StackedWait top(here_, top_over);
    EXPECT_TRUE(top.holds_up());
}

TEST_F(StackedWaitTest, OneThatHasEndedIsBeneathNobody) {
    StackedWait lower(here_, lower_over_);
    {
        Over ended;
        ended.is_over = true;
        const StackedWait gone(here_, ended);
    }
    StackedWait upper(here_, upper_over_);
    EXPECT_TRUE(holds_up_nobody(upper));
    EXPECT_GT(lower_over_.asked, 0U);
}

TEST_F(StackedWaitTest, EachThreadHasItsOwn) {
    StackedWait lower(here_, lower_over_);
    lower_over_.is_over = true;
    std::thread another([&] {
        StackedWait alone(here_, upper_over_);
        EXPECT_TRUE(holds_up_nobody(alone));
    });
    another.join();
    EXPECT_EQ(lower_over_.asked, 0U);
}

}  // namespace
}  // namespace rove::test
