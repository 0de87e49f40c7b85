// The calls that were sent on to one peer, by themselves.
#include "node/sent_on.hpp"

#include <gtest/gtest.h>

namespace rove::test {
namespace {

Forwarded call_of(NodeId origin, unsigned call, std::uint64_t position = 1, std::uint32_t generation = 1) {
    return {.position = position, .origin = origin, .call = static_cast<std::uint16_t>(call), .generation = generation};
}

TEST(SentOn, AnAnswerEndsOne) {
    SentOn calls;
    calls.add(call_of(7, 1));
    calls.add(call_of(7, 2));
    EXPECT_FALSE(calls.answered(8, 1, 1)) << "another caller's";
    EXPECT_FALSE(calls.answered(7, 1, 2)) << "another call's from the same place";
    EXPECT_TRUE(calls.answered(7, 1, 1));
    EXPECT_FALSE(calls.answered(7, 1, 1));
    ASSERT_EQ(calls.size(), 1U);
    EXPECT_EQ(calls.take_all()[0].call, 2);
    EXPECT_TRUE(calls.empty());
}

TEST(SentOn, AnotherFromTheSamePlaceTakesItsPlace) {
    SentOn calls;
    calls.add(call_of(7, 1, 1, 1));
    calls.add(call_of(7, 1, 2, 2));
    ASSERT_EQ(calls.size(), 1U);
    EXPECT_EQ(calls.take_all()[0].generation, 2U);
}

TEST(SentOn, ACallersGoWithIt) {
    SentOn calls;
    for (const NodeId origin : {6U, 7U, 8U})
        for (const unsigned call : {0U, 1U, 65535U}) calls.add(call_of(origin, call));
    calls.left(7);
    for (const Forwarded& each : calls.take_all()) EXPECT_NE(each.origin, 7U);
    calls.add(call_of(6, 0));
    calls.left(5);
    EXPECT_EQ(calls.size(), 1U);
}

TEST(SentOn, TheOldestIsForgottenBeyondItsBound) {
    SentOn calls;
    for (unsigned i = 0; i < SentOn::kMax; ++i)
        calls.add(call_of(100'000 - i, i));  // places go down as they get younger
    calls.add(call_of(7, 1));
    EXPECT_EQ(calls.size(), SentOn::kMax);
    EXPECT_FALSE(calls.answered(100'000, 0, 1));
    EXPECT_TRUE(calls.answered(99'999, 1, 1));
    EXPECT_TRUE(calls.answered(7, 1, 1));
}

TEST(SentOn, ACallerHasAShareOnly) {
    SentOn calls;
    for (unsigned i = 0; i < SentOn::kMaxOfCaller; ++i) {
        EXPECT_FALSE(calls.is_full_for(7));
        calls.add(call_of(7, i));
    }
    EXPECT_TRUE(calls.is_full_for(7));
    EXPECT_FALSE(calls.is_full_for(8));
    calls.add(call_of(7, 0, 1, 2));
    EXPECT_TRUE(calls.is_full_for(7)) << "it took the place of another one";
    EXPECT_TRUE(calls.answered(7, 0, 2));
    EXPECT_FALSE(calls.is_full_for(7));
}

TEST(SentOn, SomeHaveNotBeenTaken) {
    SentOn calls;
    for (unsigned i = 1; i <= 4; ++i) calls.add(call_of(7, i, i));
    const auto untaken = calls.take_behind(2);
    ASSERT_EQ(untaken.size(), 2U);
    EXPECT_EQ(untaken[0].call, 3);
    EXPECT_EQ(untaken[1].call, 4);
    calls.were_taken();
    EXPECT_TRUE(calls.take_behind(0).empty());
    EXPECT_EQ(calls.size(), 2U);
}

}  // namespace
}  // namespace rove::test
