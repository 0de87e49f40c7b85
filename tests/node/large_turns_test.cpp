// Whose large payload goes to a peer next.
#include "lead/large_turns.hpp"

#include <gtest/gtest.h>

namespace rove::test {
namespace {

using Turn = LargeTurns::Turn;

TEST(LargeTurns, GoInTheOrderInWhichTheyWereAskedFor) {
    LargeTurns turns;
    Turn first(turns);
    EXPECT_TRUE(first.is_next());
    first.begin();
    EXPECT_EQ(turns.begun(), 1U);
    Turn second(turns), third(turns);
    EXPECT_FALSE(second.is_next()) << "the first one is on its way";
    first.end();
    Turn again(turns);  // of the first one's thread, which does not pause
    EXPECT_FALSE(again.is_next());
    EXPECT_FALSE(third.is_next());
    EXPECT_TRUE(second.is_next());
    second.begin();
    EXPECT_FALSE(third.is_next());
    second.end();
    EXPECT_TRUE(third.is_next());
    third.end();  // it was given up before it began
    EXPECT_TRUE(again.is_next());
}

TEST(LargeTurns, ArePassedWhileAFunctionRunsOnTop) {
    LargeTurns turns;
    Turn sends(turns);
    sends.begin();
    Turn waits(turns), last(turns);
    sends.go_beneath();
    EXPECT_TRUE(waits.is_next());
    EXPECT_FALSE(last.is_next()) << "one who could go is before it";
    waits.go_beneath();
    EXPECT_TRUE(last.is_next());
    last.begin();
    EXPECT_EQ(turns.begun(), 2U);
    sends.come_up();
    waits.come_up();
    EXPECT_FALSE(waits.is_next());
    sends.end();
    EXPECT_FALSE(waits.is_next()) << "the one that passed it is on its way";
    last.end();
    EXPECT_TRUE(waits.is_next());
}

TEST(LargeTurns, EndWithWhoeverKeepsThem) {
    LargeTurns turns;
    {
        Turn sends(turns);
        sends.begin();
        const Turn waits(turns);
        EXPECT_FALSE(waits.is_next());
    }
    EXPECT_EQ(turns.begun(), 0U);
    const Turn next(turns);
    EXPECT_TRUE(next.is_next());
}

}  // namespace
}  // namespace rove::test
