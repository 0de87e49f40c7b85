// Questions for code that were passed on, by themselves.
#include "peer/questions_passed_on.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "peer/peer_state.hpp"

namespace rove::test {
namespace {

class Questions : public testing::Test {
protected:
    using Added = QuestionsPassedOn::Added;
    static wire::NeedCode need(NodeId asker, std::uint32_t handle) { return {.asker = asker, .handle = handle}; }
    Added add(const PeerState& from, const wire::NeedCode& need) { return questions_.add(from, two_, need, now_); }
    QuestionsPassedOn::Asker takes_piece(const PeerState& by, NodeId asker, const wire::CodeChunk& piece, std::size_t bytes) {
        return questions_.takes_piece(by, asker, piece, bytes, now_);
    }
    TimePoint now_ = Clock::now();
    std::size_t outbox_bytes_ = 0;
    PeerState one_{outbox_bytes_}, two_{outbox_bytes_}, three_{outbox_bytes_};
    QuestionsPassedOn questions_;
};

wire::CodeChunk piece(unsigned char package, std::uint32_t item, std::uint32_t offset, std::uint32_t total) {
    wire::CodeChunk chunk{.item = item, .offset = offset, .total_bytes = total};
    std::memset(&chunk.package, package, sizeof chunk.package);
    return chunk;
}

TEST_F(Questions, AnAnswerEndsTheOneThatWasAsked) {
    EXPECT_EQ(questions_.add(one_, two_, need(7, 1), now_), Added::asked);
    EXPECT_EQ(questions_.add(one_, two_, need(8, 1), now_), Added::asked);
    EXPECT_EQ(questions_.answered(three_, 7, need(7, 1)), nullptr) << "another peer was asked";
    EXPECT_EQ(questions_.answered(two_, 9, need(9, 1)), nullptr) << "nobody asked for that one";
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 2)), nullptr) << "other code";
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 1)), &one_);
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 1)), nullptr) << "it was answered";
    EXPECT_EQ(questions_.answered(two_, 8, need(8, 1)), &one_);
}

TEST_F(Questions, OneThatIsTakenBackLeavesThoseOfOthers) {
    EXPECT_EQ(questions_.add(one_, two_, need(7, 1), now_), Added::asked);
    EXPECT_EQ(questions_.add(three_, two_, need(7, 1), now_), Added::asked);
    questions_.take_back(three_, two_, need(7, 1));
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 1)), &one_);
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 1)), nullptr) << "it was taken back";
}

TEST_F(Questions, WhatAPeerThatIsGoneWasAskedIsUnanswered) {
    EXPECT_EQ(questions_.add(one_, two_, need(1, 1), now_), Added::asked);
    EXPECT_EQ(questions_.add(two_, three_, need(2, 2), now_), Added::asked);
    EXPECT_EQ(questions_.add(three_, two_, need(3, 3), now_), Added::asked);
    EXPECT_EQ(questions_.add(one_, three_, need(4, 4), now_), Added::asked);
    const auto unanswered = questions_.without(two_);
    ASSERT_EQ(unanswered.size(), 2U);
    EXPECT_EQ(unanswered[0].from, &one_);
    EXPECT_EQ(unanswered[0].need.handle, 1U);
    EXPECT_EQ(unanswered[1].from, &three_);
    EXPECT_EQ(questions_.answered(three_, 2, need(2, 2)), nullptr) << "what it had asked itself goes with it";
    EXPECT_EQ(questions_.answered(three_, 4, need(4, 4)), &one_);
}

TEST_F(Questions, APeerOfAnotherEngineIsKnownByItsName) {
    using Asker = QuestionsPassedOn::Asker;
    const Asker far(1, 7), farther(2, 7);
    EXPECT_EQ(questions_.add(far, two_, need(7, 1), now_), Added::asked);
    EXPECT_EQ(questions_.add(far, two_, need(7, 1), now_), Added::asked_once);
    EXPECT_EQ(questions_.add(farther, two_, need(7, 2), now_), Added::asked);
    EXPECT_EQ(questions_.add(far, two_, need(7, 3), now_), Added::asked);
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 1)), far);
    questions_.asker_left(far);
    EXPECT_TRUE(questions_.answered(two_, 7, need(7, 3)).is_nobody()) << "it has gone";
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 2)), farther) << "met by another engine since";
}

TEST_F(Questions, APeerOfAnotherEngineHasNoMoreWaitingThanOneOfThis) {
    const QuestionsPassedOn::Asker far(1, 7);
    for (std::uint32_t i = 0; i < QuestionsPassedOn::kOfPeerMax; ++i)
        EXPECT_EQ(questions_.add(far, two_, need(7, i), now_), Added::asked);
    EXPECT_EQ(questions_.add(far, two_, need(7, 1000), now_), Added::no_room);
}

// A lack for it would end a call that has asked since, and whose answer is on its way.
TEST_F(Questions, WhatAPeerThatIsGoneHasAnsweredIsAnswered) {
    EXPECT_EQ(questions_.add(one_, two_, need(1, 1), now_), Added::asked);
    EXPECT_EQ(questions_.takes_piece(two_, 1, piece(5, 0, 0, 100), 100, now_), &one_);
    EXPECT_EQ(questions_.takes_piece(two_, 1, piece(5, 1, 0, 300), 300, now_), &one_);
    EXPECT_EQ(questions_.add(one_, two_, need(2, 2), now_), Added::asked);
    EXPECT_EQ(questions_.takes_piece(two_, 2, piece(6, 0, 0, 100), 100, now_), &one_);
    EXPECT_EQ(questions_.takes_piece(two_, 2, piece(6, 1, 0, 300), 200, now_), &one_) << "and not the rest";
    const auto unanswered = questions_.without(two_);
    ASSERT_EQ(unanswered.size(), 1U);
    EXPECT_EQ(unanswered[0].need.handle, 2U);
}

// The call that asked runs as soon as its image is there, and the next one asks while bitcode of the first one's package still comes.
TEST_F(Questions, TheRestOfAnotherPackageAnswersNothingThatWasAskedMeanwhile) {
    EXPECT_EQ(add(one_, need(7, 1)), Added::asked);
    EXPECT_EQ(add(one_, need(7, 2)), Added::asked);
    EXPECT_EQ(takes_piece(two_, 7, piece(5, 0, 0, 100), 100), &one_);
    EXPECT_EQ(takes_piece(two_, 7, piece(5, 1, 0, 300), 200), &one_);
    EXPECT_EQ(add(one_, need(7, 3)), Added::asked);
    EXPECT_EQ(takes_piece(two_, 7, piece(5, 1, 200, 300), 100), &one_);
    const auto unanswered = questions_.without(two_);
    ASSERT_EQ(unanswered.size(), 1U) << "the second may be of the first one's package";
    EXPECT_EQ(unanswered[0].need.handle, 3U);
}

TEST_F(Questions, OfTwoOriginsAreTwo) {
    wire::NeedCode first = need(1, 1), second = need(1, 1);
    first.origin = 8;
    second.origin = 9;
    EXPECT_EQ(questions_.add(one_, two_, first, now_), Added::asked);
    EXPECT_EQ(questions_.add(one_, two_, second, now_), Added::asked);
    EXPECT_EQ(questions_.answered(two_, 1, second), &one_);
    EXPECT_EQ(questions_.answered(two_, 1, second), nullptr);
    EXPECT_EQ(questions_.answered(two_, 1, first), &one_);
}

TEST_F(Questions, OnePeerHasAShareForThoseThatWait) {
    constexpr std::uint32_t kShare = QuestionsPassedOn::kOfPeerMax;
    constexpr NodeId kOther = 1000;
    EXPECT_EQ(add(three_, need(kOther, 0)), Added::asked);
    for (std::uint32_t i = 0; i < kShare; ++i) EXPECT_EQ(add(one_, need(i, 0)), Added::asked);
    EXPECT_EQ(add(one_, need(kShare, 0)), Added::no_room);
    EXPECT_EQ(add(one_, need(5, 0)), Added::asked_once);
    EXPECT_EQ(add(three_, need(kOther, 1)), Added::asked) << "another one has a share of its own";
    // What is being answered makes room.
    EXPECT_EQ(takes_piece(two_, kOther, piece(1, 0, 0, 30), 10), &three_);
    EXPECT_EQ(add(one_, need(kShare, 0)), Added::no_room) << "another one's does not";
    EXPECT_EQ(takes_piece(two_, 3, piece(2, 0, 0, 30), 10), &one_);
    EXPECT_EQ(add(one_, need(kShare, 0)), Added::asked);
    EXPECT_EQ(questions_.answered(two_, 3, need(3, 0)), nullptr) << "it made room";
    EXPECT_EQ(questions_.answered(two_, 1, need(1, 0)), &one_);
    EXPECT_EQ(add(one_, need(1, 0)), Added::asked) << "it was answered";
    // So does what waits for longer than any call.
    EXPECT_EQ(add(one_, need(kShare + 1, 0)), Added::no_room);
    now_ += kCodeWaitMax;
    EXPECT_EQ(add(one_, need(kShare + 1, 0)), Added::asked);
    EXPECT_EQ(questions_.answered(two_, 0, need(0, 0)), nullptr);
    EXPECT_EQ(add(one_, need(5, 0)), Added::asked) << "asked again, when nothing came";
    EXPECT_EQ(add(one_, need(5, 0)), Added::asked_once);
}

// One package's functions, or one function by its handle and by its name.
TEST_F(Questions, ThatOnePackageAnswersMayAllBeAskedAgain) {
    EXPECT_EQ(add(one_, need(7, 1)), Added::asked);
    EXPECT_EQ(add(one_, need(7, 2)), Added::asked);
    EXPECT_EQ(add(one_, need(8, 2)), Added::asked);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 0, 30), 30), &one_);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 0, 30), 30), &one_);
    EXPECT_EQ(add(one_, need(7, 1)), Added::asked);
    EXPECT_EQ(add(one_, need(7, 2)), Added::asked);
    EXPECT_EQ(add(one_, need(8, 2)), Added::asked_once) << "of another one that asks";
    EXPECT_EQ(add(one_, need(7, 2)), Added::asked_once);
}

// The peer that passed on an asker's former question may have got a lack for it since, and would drop what came for the asker now.
TEST_F(Questions, CodeGoesBackOnTheWayThatItWasAskedForLast) {
    EXPECT_EQ(add(one_, need(7, 1)), Added::asked);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 0, 30), 30), &one_);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 1, 0, 50), 50), &one_);
    EXPECT_EQ(add(three_, need(7, 1)), Added::asked);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 0, 30), 30), &three_);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 1, 0, 50), 20), &three_);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 1, 20, 50), 30), &three_);
    EXPECT_EQ(add(one_, need(7, 1)), Added::asked) << "and by the first one again";
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 0, 30), 30), &one_);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 1, 0, 50), 50), &one_);
}

TEST_F(Questions, ALackGoesBackOnTheWayThatItWasAskedForLast) {
    EXPECT_EQ(add(one_, need(7, 1)), Added::asked);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 0, 30), 30), &one_);
    EXPECT_EQ(add(three_, need(7, 1)), Added::asked);
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 1)), &three_);
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 1)), &one_);
}

// Answers come in the order of their questions, and a lack may come between them, if one form of the first package is lacking.
TEST_F(Questions, TwoPackagesForOneAskerGoToWhoAskedForEach) {
    EXPECT_EQ(add(one_, need(7, 1)), Added::asked);
    EXPECT_EQ(add(three_, need(7, 2)), Added::asked);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 0, 30), 30), &one_);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 1, 0, 50), 50), &one_);
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 1)), &one_);
    EXPECT_EQ(takes_piece(two_, 7, piece(2, 0, 0, 30), 30), &three_);
    EXPECT_EQ(takes_piece(two_, 7, piece(2, 1, 0, 50), 50), &three_);
}

// Nobody waits any more for the answer to the first question.
TEST_F(Questions, OneThatWasNotAnsweredInTimeTakesNoPieceOfALaterOne) {
    EXPECT_EQ(add(one_, need(7, 1)), Added::asked);
    now_ += kCodeWaitMax;
    EXPECT_EQ(add(three_, need(7, 1)), Added::asked);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 0, 30), 30), &three_);
}

TEST_F(Questions, AllTogetherAreBounded) {
    constexpr std::size_t kPeers = QuestionsPassedOn::kMax / QuestionsPassedOn::kOfPeerMax;
    std::deque<PeerState> peers;
    for (std::size_t i = 0; i < kPeers; ++i) peers.emplace_back(outbox_bytes_);
    for (PeerState& peer : peers)
        for (std::uint32_t i = 0; i < QuestionsPassedOn::kOfPeerMax; ++i)
            EXPECT_EQ(add(peer, need(7, i)), Added::asked);
    EXPECT_EQ(add(one_, need(7, 0)), Added::no_room);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 0, 30), 10), &peers[0]);
    EXPECT_EQ(add(one_, need(7, 0)), Added::asked);
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 0)), &one_);
    for (std::size_t i = kPeers - 1; i > 0; --i) EXPECT_EQ(questions_.answered(two_, 7, need(7, 0)), &peers[i]);
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 0)), nullptr) << "the first one's made room";
}

TEST_F(Questions, ArePassedTheirCodeInItsOrder) {
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 0, 30), 10), nullptr) << "nobody asked";
    EXPECT_EQ(questions_.add(one_, two_, need(7, 1), now_), Added::asked);
    EXPECT_EQ(takes_piece(three_, 7, piece(1, 0, 0, 30), 10), nullptr) << "another peer was asked";
    EXPECT_EQ(takes_piece(two_, 8, piece(1, 0, 0, 30), 10), nullptr) << "for another one";
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 1, 0, 30), 10), nullptr) << "the manifest comes first";
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 10, 30), 10), nullptr) << "from its beginning";
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 0, 30), 10), &one_);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 20, 30), 10), nullptr) << "there is a gap";
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 10, 40), 10), nullptr) << "of another size";
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 1, 10, 30), 10), nullptr) << "of another item";
    EXPECT_EQ(takes_piece(two_, 7, piece(2, 0, 10, 30), 10), nullptr) << "of another package";
    EXPECT_EQ(takes_piece(two_, 7, piece(2, 0, 0, 30), 10), nullptr) << "of another package";
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 10, 30), 20), &one_);
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 3, 0, 50), 50), &one_) << "the next item";
    EXPECT_EQ(takes_piece(two_, 7, piece(1, 0, 0, 30), 10), &one_) << "it was asked again";
    EXPECT_EQ(questions_.add(one_, two_, need(7, 1), now_), Added::asked);
    EXPECT_EQ(takes_piece(two_, 7, piece(2, 0, 0, 30), 10), &one_) << "of another package now";
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 1)), &one_) << "it is one question";
    EXPECT_EQ(questions_.answered(two_, 7, need(7, 1)), nullptr);
}

}  // namespace
}  // namespace rove::test
