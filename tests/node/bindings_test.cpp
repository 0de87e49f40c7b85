// Handles and what they mean, by themselves.
#include "peer/bindings.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace rove::test {
namespace {

FunctionId function(std::uint32_t number) {
    std::array<std::byte, sizeof(FunctionId)> bytes{};
    std::memcpy(bytes.data(), &number, sizeof number);
    return FunctionId::from(bytes);
}

TEST(Bindings, KnowsHandlesBothWays) {
    Bindings bindings;
    for (int i = 0; i < 3; ++i) bindings.expect();
    bindings.learn(function(1), 10);
    bindings.learn(function(2), 20);
    EXPECT_EQ(bindings.handle_of(function(1)), 10U);
    bindings.learn(function(1), 11);
    EXPECT_EQ(bindings.handle_of(function(1)), 11U);
    EXPECT_EQ(bindings.function_of(10), function(1)) << "calls by the handle that it had before may be on their way";
    bindings.forget(function(1), 10);
    EXPECT_EQ(bindings.handle_of(function(1)), 11U) << "it has another one by now";
    bindings.forget(function(1), 11);
    EXPECT_EQ(bindings.handle_of(function(1)), std::nullopt);
    EXPECT_EQ(bindings.function_of(11), function(1));
    EXPECT_EQ(bindings.handle_of(function(2)), 20U);
}

TEST(Bindings, LearnsAHandleForEachNameThatWasSent) {
    Bindings bindings;
    bindings.learn(function(1), 10);
    EXPECT_EQ(bindings.handle_of(function(1)), std::nullopt) << "it was not asked";
    bindings.expect();
    bindings.learn(function(1), 10);
    bindings.learn(function(2), 20);
    EXPECT_EQ(bindings.handle_of(function(1)), 10U);
    EXPECT_EQ(bindings.handle_of(function(2)), std::nullopt);
}

// Whoever is called by ever more names tells as many. Of these the last ones are known: calls by their handles may be on their way.
TEST(Bindings, HandlesAreBounded) {
    Bindings bindings;
    constexpr std::uint32_t kLearnt = 3 * kBindingsMax;
    for (std::uint32_t i = 0; i < kLearnt; ++i) bindings.expect();
    for (std::uint32_t i = 0; i < kLearnt; ++i) {
        bindings.learn(function(i), i);
        (void)bindings.handle_of(function(i));
        ASSERT_LE(bindings.handles(), kBindingsMax);
    }
    EXPECT_LE(bindings.all().size(), kBindingsMax);
    for (std::uint32_t i = kLearnt - kBindingsMax / 2; i < kLearnt; ++i) {
        ASSERT_EQ(bindings.handle_of(function(i)), i);
        ASSERT_EQ(bindings.function_of(i), function(i));
    }
    EXPECT_EQ(bindings.handle_of(function(0)), std::nullopt);
    EXPECT_EQ(bindings.function_of(0), std::nullopt);
}

TEST(Bindings, OneHandleForAllFunctionsIsNoMoreThanTheBound) {
    Bindings bindings;
    for (std::uint32_t i = 0; i < 3 * kBindingsMax; ++i) {
        bindings.expect();
        bindings.learn(function(i), 7);
    }
    EXPECT_LE(bindings.all().size(), kBindingsMax);
}

// A node that forgets gives a function one handle after the other, and others ever more.
TEST(Bindings, WhatAHandleThatIsUsedMeansIsKnown) {
    Bindings bindings;
    for (std::uint32_t i = 0; i < 4 * kBindingsMax; ++i) {
        bindings.expect();
        bindings.learn(function(i % 3 == 0 ? 1 : i + 10), i);
        ASSERT_LE(bindings.handles(), kBindingsMax);
        if (const auto handle = bindings.handle_of(function(1))) {
            ASSERT_EQ(bindings.function_of(*handle), function(1)) << i;
            ASSERT_EQ(bindings.recent(function(1)).handle, *handle);
        }
        if (const auto handle = bindings.handle_of(function(11))) {
            ASSERT_EQ(bindings.function_of(*handle), function(11)) << i;
        }
    }
    EXPECT_EQ(bindings.handle_of(function(11)), std::nullopt) << "it was learnt long ago";
}

TEST(Bindings, TheFastLookUpForgetsAsWell) {
    Bindings bindings;
    bindings.expect();
    bindings.learn(function(1), 10);
    ASSERT_EQ(bindings.handle_of(function(1)), 10U);
    EXPECT_EQ(bindings.recent(function(1)).function, function(1));
    EXPECT_EQ(bindings.recent(function(1)).handle, 10U);
    bindings.forget(function(1), 10);
    EXPECT_NE(bindings.recent(function(1)).function, function(1));
}

TEST(Bindings, APeerThatWasRestartedHasGivenNone) {
    Bindings bindings;
    bindings.expect();
    bindings.expect();
    bindings.learn(function(1), 10);
    ASSERT_EQ(bindings.handle_of(function(1)), 10U);
    bindings.clear();
    EXPECT_EQ(bindings.handle_of(function(1)), std::nullopt);
    EXPECT_NE(bindings.recent(function(1)).function, function(1));
    bindings.learn(function(2), 20);
    EXPECT_EQ(bindings.handle_of(function(2)), std::nullopt) << "the call that asked for it went to another process";
}

TEST(Aliases, AreBounded) {
    Aliases aliases;
    EXPECT_EQ(aliases.find(0), nullptr);
    for (std::uint32_t i = 0; i < kAliasesMax; ++i) aliases.learn(i, function(i));
    ASSERT_NE(aliases.find(0), nullptr);
    EXPECT_EQ(*aliases.find(0), function(0));
    aliases.learn(kAliasesMax, function(1));
    EXPECT_EQ(aliases.find(0), nullptr);
    ASSERT_NE(aliases.find(kAliasesMax - 1), nullptr);
    EXPECT_EQ(*aliases.find(kAliasesMax - 1), function(kAliasesMax - 1));
}

}  // namespace
}  // namespace rove::test
