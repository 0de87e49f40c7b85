// PeerState alone.
#include "peer/peer_state.hpp"

#include <gtest/gtest.h>

namespace rove::test {
namespace {

TEST(PeerState, KnowsAPlainReply) {
    std::size_t outbox_bytes = 0;
    PeerState peer(outbox_bytes);
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

// A gigabyte of small frames would keep the engine's lock for half a second.
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
