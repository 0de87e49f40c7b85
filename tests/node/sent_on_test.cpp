// The calls that were sent on to one peer, by themselves.
#include "peer/sent_on.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rove::test {
namespace {

Forwarded call_of(NodeId origin, unsigned call, std::uint64_t position = 1, std::uint32_t generation = 1) {
    return {.position = position, .origin = origin, .call = static_cast<std::uint16_t>(call), .generation = generation};
}

std::vector<Forwarded> untaken_of(SentOn& calls, std::uint64_t position) {
    std::vector<Forwarded> untaken;
    calls.take_untaken(position, [&untaken](const Forwarded& call) noexcept { untaken.push_back(call); });
    return untaken;
}
std::vector<Forwarded> all_of(SentOn& calls) {
    std::vector<Forwarded> all;
    calls.take_all([&all](const Forwarded& call) noexcept { all.push_back(call); });
    return all;
}

TEST(SentOn, AnAnswerEndsOne) {
    SentOn calls;
    calls.add(call_of(7, 1), true);
    calls.add(call_of(7, 2), true);
    EXPECT_FALSE(calls.answered(8, 1, 1)) << "another caller's";
    EXPECT_FALSE(calls.answered(7, 1, 2)) << "another call's from the same place";
    EXPECT_TRUE(calls.answered(7, 1, 1));
    EXPECT_FALSE(calls.answered(7, 1, 1));
    ASSERT_EQ(calls.size(), 1U);
    EXPECT_EQ(all_of(calls)[0].call, 2);
    EXPECT_TRUE(calls.empty());
}

TEST(SentOn, AnotherFromTheSamePlaceTakesItsPlace) {
    SentOn calls;
    calls.add(call_of(7, 1, 1, 1), true);
    calls.add(call_of(7, 1, 2, 2), true);
    ASSERT_EQ(calls.size(), 1U);
    EXPECT_EQ(all_of(calls)[0].generation, 2U);
}

TEST(SentOn, ACallersGoWithIt) {
    SentOn calls;
    for (const NodeId origin : {6U, 7U, 8U})
        for (const unsigned call : {0U, 1U, 65535U}) calls.add(call_of(origin, call), true);
    calls.left(7);
    for (const Forwarded& each : all_of(calls)) EXPECT_NE(each.origin, 7U);
    calls.add(call_of(6, 0), true);
    calls.left(5);
    EXPECT_EQ(calls.size(), 1U);
}

TEST(SentOn, TheOldestIsForgottenBeyondItsBound) {
    SentOn calls;
    for (unsigned i = 0; i < SentOn::kMax; ++i)
        calls.add(call_of(100'000 - i, i), true);  // places go down as they get younger
    calls.add(call_of(7, 1), true);
    EXPECT_EQ(calls.size(), SentOn::kMax);
    EXPECT_FALSE(calls.answered(100'000, 0, 1));
    EXPECT_TRUE(calls.answered(99'999, 1, 1));
    EXPECT_TRUE(calls.answered(7, 1, 1));
}

TEST(SentOn, ACallerHasAShareOnly) {
    SentOn calls;
    for (unsigned i = 0; i < SentOn::kMaxOfCaller; ++i) {
        EXPECT_FALSE(calls.is_full_for(7, static_cast<std::uint16_t>(i)));
        calls.add(call_of(7, i), true);
    }
    EXPECT_TRUE(calls.is_full_for(7, SentOn::kMaxOfCaller));
    EXPECT_FALSE(calls.is_full_for(8, 0));
    EXPECT_FALSE(calls.is_full_for(7, 0)) << "it takes the place of another one";
    calls.add(call_of(7, 0, 1, 2), true);
    EXPECT_TRUE(calls.is_full_for(7, SentOn::kMaxOfCaller));
    EXPECT_TRUE(calls.answered(7, 0, 2));
    EXPECT_FALSE(calls.is_full_for(7, SentOn::kMaxOfCaller));
}

TEST(SentOn, ThoseWhoseAnswersPassHereAreNotForgotten) {
    SentOn calls;
    constexpr unsigned kCallers = SentOn::kMax / SentOn::kMaxOfCaller;
    calls.add(call_of(100, 0), true);
    for (unsigned i = 0; i < SentOn::kMax; ++i) calls.add(call_of(200, i), false);
    EXPECT_EQ(calls.size(), SentOn::kMax);
    for (unsigned i = 1; i < SentOn::kMaxOfCaller; ++i) calls.add(call_of(100, i), true);
    for (unsigned caller = 1; caller < kCallers; ++caller)
        for (unsigned i = 0; i < SentOn::kMaxOfCaller; ++i) {
            ASSERT_FALSE(calls.is_full_for(100 + caller, static_cast<std::uint16_t>(i)));
            calls.add(call_of(100 + caller, i), true);
        }
    EXPECT_EQ(calls.size(), SentOn::kMax);
    EXPECT_TRUE(calls.is_full_for(300, 0)) << "for all callers at this node together";
    calls.add(call_of(200, 0), false);
    EXPECT_FALSE(calls.answered(200, 0, 1)) << "it has pushed none of them out";
    EXPECT_TRUE(calls.answered(100, 0, 1));
    EXPECT_FALSE(calls.is_full_for(300, 0));
    calls.left(101);
    calls.add(call_of(200, 0), false);
    EXPECT_FALSE(calls.is_full_for(101, 0));
    EXPECT_EQ(all_of(calls).size(), SentOn::kMax - SentOn::kMaxOfCaller);
    EXPECT_FALSE(calls.is_full_for(300, 0));
}

TEST(SentOn, OneThatWaitsIsBehindAnyPosition) {
    SentOn calls;
    calls.add(call_of(7, 1, SentOn::kWaits), true);
    calls.add(call_of(7, 2, 5), true);
    calls.sent(call_of(7, 1, 4));
    EXPECT_TRUE(untaken_of(calls, 5).empty());
    calls.sent(call_of(8, 1, 9));
    calls.sent(call_of(7, 2, 9, 2));
    EXPECT_EQ(calls.size(), 2U) << "its caller had gone, or it was answered";
    EXPECT_TRUE(untaken_of(calls, 5).empty());
    calls.add(call_of(7, 3, SentOn::kWaits), true);
    ASSERT_EQ(untaken_of(calls, 5).size(), 1U);
    EXPECT_EQ(calls.size(), 2U);
}

TEST(SentOn, SomeHaveNotBeenTaken) {
    SentOn calls;
    for (unsigned i = 1; i <= 4; ++i) calls.add(call_of(7, i, i), true);
    const auto untaken = untaken_of(calls, 2);
    ASSERT_EQ(untaken.size(), 2U);
    EXPECT_EQ(untaken[0].call, 3);
    EXPECT_EQ(untaken[1].call, 4);
    calls.were_taken();
    EXPECT_TRUE(untaken_of(calls, 0).empty());
    EXPECT_EQ(calls.size(), 2U);
}

}  // namespace
}  // namespace rove::test
