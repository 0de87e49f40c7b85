// What a node keeps of a peer, by itself.
#include "node/peer_state.hpp"

#include <gtest/gtest.h>

namespace rove::test {
namespace {

FunctionId function(std::uint32_t number) {
    std::array<std::byte, sizeof(FunctionId)> bytes{};
    std::memcpy(bytes.data(), &number, sizeof number);
    return FunctionId::from(bytes);
}

TEST(PeerState, KnowsHandlesBothWays) {
    PeerState peer;
    peer.names_sent = 3;
    peer.learn_handle(function(1), 10);
    peer.learn_handle(function(2), 20);
    EXPECT_EQ(peer.handle_of(function(1)), 10U);
    peer.learn_handle(function(1), 11);
    EXPECT_EQ(peer.handle_of(function(1)), 11U);
    EXPECT_FALSE(peer.bound_to.contains(10)) << "the handle that it had before";
    peer.forget_handle(function(1));
    EXPECT_EQ(peer.handle_of(function(1)), std::nullopt);
    EXPECT_EQ(peer.handle_of(function(2)), 20U);
}

TEST(PeerState, KnowsAPlainReply) {
    PeerState peer;
    peer.my_id = 3;
    const ByteBuffer most(wire::kPayloadBytesMax + 1);
    const wire::Frame plain{{.kind = wire::Kind::reply, .node = 3}, {}, Bytes(most).first(wire::kPayloadBytesMax)};
    EXPECT_TRUE(peer.sends_plain_reply(plain));
    const auto is_plain_with = [&](const auto& change) {
        wire::Frame frame = plain;
        change(frame);
        return peer.sends_plain_reply(frame);
    };
    EXPECT_FALSE(is_plain_with([](wire::Frame& frame) { frame.header.kind = wire::Kind::bind; }));
    EXPECT_FALSE(is_plain_with([](wire::Frame& frame) { frame.header.flags = wire::kError; }));
    EXPECT_FALSE(is_plain_with([](wire::Frame& frame) { frame.header.flags = wire::kParts; }));
    EXPECT_FALSE(is_plain_with([](wire::Frame& frame) { frame.header.extra_bytes = 16; }));
    EXPECT_FALSE(is_plain_with([](wire::Frame& frame) { frame.header.node = 4; })) << "another one's call";
    EXPECT_FALSE(is_plain_with([&](wire::Frame& frame) { frame.payload = most; }));
}

TEST(PeerState, LearnsAHandleForEachNameThatWasSent) {
    PeerState peer;
    peer.learn_handle(function(1), 10);
    EXPECT_EQ(peer.handle_of(function(1)), std::nullopt) << "it was not asked";
    peer.names_sent = 1;
    peer.learn_handle(function(1), 10);
    peer.learn_handle(function(2), 20);
    EXPECT_EQ(peer.handle_of(function(1)), 10U);
    EXPECT_EQ(peer.handle_of(function(2)), std::nullopt);
}

// Whoever is called by ever more names tells as many.
TEST(PeerState, HandlesAreBounded) {
    PeerState peer;
    peer.names_sent = kBindingsMax + 1;
    for (std::uint32_t i = 0; i <= kBindingsMax; ++i) {
        peer.learn_handle(function(i), i);
        (void)peer.handle_of(function(i));
    }
    EXPECT_LE(peer.bindings.size(), kBindingsMax);
    EXPECT_LE(peer.bound_to.size(), kBindingsMax);
    EXPECT_EQ(peer.handle_of(function(kBindingsMax)), kBindingsMax);
    EXPECT_EQ(peer.handle_of(function(kBindingsMax - 1)), std::nullopt)
        << "sent by a handle that its table has no more";
}

// A gigabyte of small frames would keep the node's lock for half a second.
TEST(DroppedBytes, AreFreedInSteps) {
    DroppedBytes dropped;
    DroppedBytes::Frames frames(2 * kDroppedMax + 1, ByteBuffer(8));
    dropped.take(frames);
    EXPECT_TRUE(frames.empty());
    for (int i = 0; i < 3; ++i) dropped.take(ByteBuffer(kDroppedBytesMax));
    EXPECT_EQ(dropped.some().size(), kDroppedMax);
    EXPECT_EQ(dropped.some().size(), kDroppedMax);
    EXPECT_EQ(dropped.some().size(), 1U);
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(dropped.is_empty());
        EXPECT_EQ(dropped.some().size(), 1U) << "as large as a step";
    }
    EXPECT_TRUE(dropped.is_empty());
    EXPECT_TRUE(dropped.some().empty());
}

}  // namespace
}  // namespace rove::test
