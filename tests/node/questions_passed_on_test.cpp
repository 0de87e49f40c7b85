// Questions for code that were passed on, by themselves.
#include "node/questions_passed_on.hpp"

#include <gtest/gtest.h>

#include "node/peer_state.hpp"

namespace rove::test {
namespace {

class Questions : public testing::Test {
protected:
    static wire::NeedCode need(NodeId asker, std::uint32_t handle) { return {.asker = asker, .handle = handle}; }
    PeerState one_, two_, three_;
    QuestionsPassedOn questions_;
};

TEST_F(Questions, AnAnswerEndsTheOneThatWasAsked) {
    questions_.add({&one_, &two_, need(7, 1)});
    questions_.add({&one_, &two_, need(8, 1)});
    EXPECT_FALSE(questions_.answered(three_, 7, need(7, 1))) << "another peer was asked";
    EXPECT_FALSE(questions_.answered(two_, 9, need(9, 1))) << "nobody asked for that one";
    EXPECT_FALSE(questions_.answered(two_, 7, need(7, 2))) << "other code";
    EXPECT_TRUE(questions_.answered(two_, 7, need(7, 1)));
    EXPECT_FALSE(questions_.answered(two_, 7, need(7, 1))) << "it was answered";
    EXPECT_TRUE(questions_.answered(two_, 8, need(8, 1)));
    EXPECT_EQ(questions_.size(), 0U);
}

TEST_F(Questions, WhatAPeerThatIsGoneWasAskedIsUnanswered) {
    questions_.add({&one_, &two_, need(1, 1)});
    questions_.add({&two_, &three_, need(2, 2)});
    questions_.add({&three_, &two_, need(3, 3)});
    questions_.add({&one_, &three_, need(4, 4)});
    const auto unanswered = questions_.without(two_);
    ASSERT_EQ(unanswered.size(), 2U);
    EXPECT_EQ(unanswered[0].from, &one_);
    EXPECT_EQ(unanswered[0].need.handle, 1U);
    EXPECT_EQ(unanswered[1].from, &three_);
    ASSERT_EQ(questions_.size(), 1U) << "what it had asked itself goes with it";
    EXPECT_TRUE(questions_.answered(three_, 4, need(4, 4)));
}

TEST_F(Questions, TheOldestIsForgottenBeyondTheBound) {
    for (std::uint32_t i = 0; i <= QuestionsPassedOn::kMax; ++i) questions_.add({&one_, &two_, need(7, i)});
    EXPECT_EQ(questions_.size(), QuestionsPassedOn::kMax);
    EXPECT_FALSE(questions_.answered(two_, 7, need(7, 0)));
    EXPECT_TRUE(questions_.answered(two_, 7, need(7, 1)));
    EXPECT_TRUE(questions_.answered(two_, 7, need(7, QuestionsPassedOn::kMax)));
}

}  // namespace
}  // namespace rove::test
