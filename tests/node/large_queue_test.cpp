// Whose large payload goes to a peer next.
#include "lead/large_queue.hpp"

#include <gtest/gtest.h>

namespace rove::test {
namespace {

using Place = LargeQueue::Place;

TEST(LargeQueue, GoInTheOrderInWhichTheyWereAskedFor) {
    LargeQueue queue;
    Place first(queue);
    EXPECT_TRUE(first.is_next());
    first.begin();
    EXPECT_EQ(queue.begun(), 1U);
    Place second(queue), third(queue);
    EXPECT_FALSE(second.is_next()) << "the first one is on its way";
    first.end();
    Place again(queue);  // of the first one's thread, which does not pause
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

TEST(LargeQueue, ArePassedWhileAFunctionRunsOnTop) {
    LargeQueue queue;
    Place sends(queue);
    sends.begin();
    Place waits(queue), last(queue);
    sends.go_beneath();
    EXPECT_TRUE(waits.is_next());
    EXPECT_FALSE(last.is_next()) << "one who could go is before it";
    waits.go_beneath();
    EXPECT_TRUE(last.is_next());
    last.begin();
    EXPECT_EQ(queue.begun(), 2U);
    sends.come_up();
    waits.come_up();
    EXPECT_FALSE(waits.is_next());
    sends.end();
    EXPECT_FALSE(waits.is_next()) << "the one that passed it is on its way";
    last.end();
    EXPECT_TRUE(waits.is_next());
}

TEST(LargeQueue, EndWithWhoeverKeepsThem) {
    LargeQueue queue;
    {
        Place sends(queue);
        sends.begin();
        const Place waits(queue);
        EXPECT_FALSE(waits.is_next());
    }
    EXPECT_EQ(queue.begun(), 0U);
    const Place next(queue);
    EXPECT_TRUE(next.is_next());
}

}  // namespace
}  // namespace rove::test
