// Frames on their way to peers, without a node.
#include "peer/sender.hpp"

#include <gtest/gtest.h>

#include "neighbours.hpp"

namespace rove::test {
namespace {

using fabric::Traffic;
using wire::Kind;

class SenderTest : public testing::Test {
protected:
    static wire::FrameHeader call_of(NodeId caller, std::uint16_t slot) {
        return {.kind = Kind::call, .generation = 1, .node = caller, .call = slot};
    }
    // Sends calls until one has to wait. Returns how many frames were sent.
    unsigned fill(PeerState& peer) {
        unsigned sent = 0;
        const ByteBuffer payload(60'000);
        for (; peer.outbox_of(Traffic::calls).is_empty(); ++sent)
            value_or_throw(sender_.send(peer, Traffic::calls, {.kind = Kind::call}, {}, payload));
        return sent;
    }

    Neighbours neighbours_;
    Sender& sender_ = neighbours_.sender;
};

TEST_F(SenderTest, AFrameIsInTheMailboxAtOnceWhereThereIsRoom) {
    PeerState& peer = neighbours_.add(2);
    const ByteBuffer extra(16, std::byte{1}), payload(5, std::byte{2});
    ASSERT_TRUE(sender_.send(peer, Traffic::calls, call_of(0, 3), extra, payload));
    const auto received = neighbours_.received_by(peer, Traffic::calls);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received.front().header.call, 3);
    EXPECT_EQ(received.front().extra, extra);
    EXPECT_EQ(received.front().payload, payload);
    EXPECT_EQ(neighbours_.woken, 0U) << "nothing is left to do";
}

TEST_F(SenderTest, WhatFindsNoRoomWaitsAndKeepsItsPlace) {
    PeerState& peer = neighbours_.add(2);
    const unsigned sent = fill(peer);
    EXPECT_GT(sent, 1U);
    EXPECT_EQ(neighbours_.woken, 1U) << "the leader has a frame to send";
    EXPECT_GT(sender_.waiting_bytes(), 60'000U);
    ASSERT_TRUE(sender_.send(peer, Traffic::calls, call_of(0, 9), {}, {}));  // for which there would be room
    EXPECT_EQ(peer.outbox_of(Traffic::calls).count(), 2U);
    EXPECT_EQ(sender_.flush(peer), 0U);
    EXPECT_EQ(neighbours_.received_by(peer, Traffic::calls).size(), sent - 1);
    EXPECT_EQ(sender_.flush(peer), 2U);
    const auto received = neighbours_.received_by(peer, Traffic::calls);
    ASSERT_EQ(received.size(), 2U);
    EXPECT_EQ(received.back().header.call, 9);
    EXPECT_EQ(sender_.waiting_bytes(), 0U);
}

TEST_F(SenderTest, APeerForWhichAFrameWaitsIsLookedAt) {
    PeerState& peer = neighbours_.add(2);
    fill(peer);
    fabric::Link* const links[] = {peer.link().get()};
    neighbours_.fabric()->cool(links);
    ASSERT_TRUE(peer.link()->is_cold());
    ASSERT_TRUE(sender_.send(peer, Traffic::calls, call_of(0, 9), {}, {}));
    EXPECT_EQ(peer.outbox_of(Traffic::calls).count(), 2U);
    EXPECT_FALSE(peer.link()->is_cold());
}

TEST_F(SenderTest, NothingIsSentToAPeerThatIsGone) {
    PeerState& peer = neighbours_.add(2);
    peer.lose(Error(ErrorCode::disconnected, "its cable was pulled"));
    const Status sent = sender_.send(peer, Traffic::calls, call_of(0, 1), {}, {});
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code(), ErrorCode::disconnected);
    EXPECT_NE(sent.error().message().find("its cable was pulled"), std::string::npos);
}

// Calls that are too many are refused; what others wait for is not, so its peer goes.
TEST_F(SenderTest, WhoTakesNothingIsCutOff) {
    PeerState& peer = neighbours_.add(2);
    fill(peer);
    const ByteBuffer payload(wire::kPayloadBytesMax);
    Status sent;
    while (sent) sent = sender_.send(peer, Traffic::calls, call_of(0, 1), {}, payload);
    EXPECT_EQ(sent.error().code(), ErrorCode::overloaded);
    EXPECT_EQ(peer.link()->broken(), nullptr);

    while (peer.outbox_of(Traffic::prompt).bytes() < kOutboxBytesMax - 2 * payload.size())
        ASSERT_TRUE(sender_.send_or_cut(peer, {.kind = Kind::reply}, {}, payload));
    const TimePoint end = Clock::now() + std::chrono::seconds(20);
    while (sender_.send_or_cut(peer, {.kind = Kind::reply}, {}, payload) && Clock::now() < end) {
    }
    ASSERT_NE(peer.link()->broken(), nullptr);
    EXPECT_EQ(peer.link()->broken()->code(), ErrorCode::overloaded);
}

TEST_F(SenderTest, ACallThatIsSentOnIsKnownUntilItIsAnswered) {
    PeerState& peer = neighbours_.add(2);
    PeerState& caller = neighbours_.add(client_id(0, 7));
    ASSERT_TRUE(sender_.send(peer, Traffic::calls, call_of(0, 1), {}, {}));
    EXPECT_TRUE(peer.sends.sent_on.empty()) << "this node's own call";
    ASSERT_TRUE(sender_.send(peer, Traffic::calls, call_of(caller.id(), 5), {}, {}));
    EXPECT_EQ(peer.sends.sent_on.size(), 1U);
    const wire::FrameHeader reply{.kind = Kind::reply, .generation = 1, .node = caller.id(), .call = 5, .hops = 1};
    sender_.pass_reply_on(peer, {reply, {}, {}});
    EXPECT_TRUE(peer.sends.sent_on.empty());
    const auto received = neighbours_.received_by(caller);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received.front().header.call, 5);
}

TEST_F(SenderTest, ACallOfAClientThatHasGoneIsNotRemembered) {
    PeerState& peer = neighbours_.add(2);
    ASSERT_TRUE(sender_.send(peer, Traffic::calls, call_of(client_id(0, 7), 5), {}, {}));
    EXPECT_TRUE(peer.sends.sent_on.empty());
}

// A member that was lost may be met again: then it gets what arrived for its callers in between.
TEST_F(SenderTest, AReplyForALostMemberIsKept) {
    neighbours_.absent.lost(3, {}, "node 3 cannot be reached");
    const ByteBuffer payload(10);
    sender_.route({{.body_bytes = 10, .kind = Kind::reply, .node = 3}, {}, payload});
    EXPECT_GT(neighbours_.absent.kept_bytes(), 10U);
    EXPECT_EQ(sender_.absent(3).message(), "node 3 cannot be reached");
    EXPECT_NE(sender_.absent(2).message().find("has not been met"), std::string::npos);
}

// Of a node that this one has never heard of, members with lower ids may have.
TEST_F(SenderTest, AReplyForAnUnknownMemberGoesToOneWithALowerId) {
    Neighbours beside(2);
    PeerState& lower = beside.add(1);
    beside.sender.route({{.kind = Kind::reply, .node = 3, .call = 8}, {}, {}});
    const auto received = beside.received_by(lower);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received.front().header.call, 8);
}

TEST_F(SenderTest, ANodeOfAnotherClusterIsCalledByItsOwnName) {
    PeerState& home = neighbours_.add(0, client_id(0, 4));  // its node 0, of which this one is a client
    ASSERT_TRUE(home.is_foreign());
    sender_.route({{.kind = Kind::reply, .handle = 0, .node = home.back(), .call = 6}, {}, {}});
    const auto received = neighbours_.received_by(home);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received.front().header.node, 0U);
    EXPECT_EQ(received.front().header.handle, client_id(0, 4)) << "who answers";
}

}  // namespace
}  // namespace rove::test
