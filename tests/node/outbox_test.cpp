// Frames that wait for room, by themselves.
#include "peer/outbox.hpp"

#include <gtest/gtest.h>

namespace rove::test {
namespace {

using fabric::Traffic;

class OutboxTest : public testing::Test {
protected:
    static ByteBuffer bytes(std::string_view text) {
        const auto* first = reinterpret_cast<const std::byte*>(text.data());
        return {first, first + text.size()};
    }
    static wire::FrameHeader header(std::uint16_t call) { return {.kind = wire::Kind::reply, .call = call}; }
    static std::uint16_t call_of(const ByteBuffer& frame) {
        wire::FrameHeader header;
        std::memcpy(&header, frame.data(), sizeof header);
        return header.call;
    }

    std::size_t of_all_ = 0;
    Outbox calls_{Traffic::calls, of_all_}, replies_{Traffic::prompt, of_all_};
    DroppedBytes dropped_;
};

TEST_F(OutboxTest, FramesLeaveInTheirOrder) {
    for (std::uint16_t call = 1; call <= 3; ++call) calls_.push(header(call), bytes("extra"), bytes("payload"));
    EXPECT_EQ(calls_.count(), 3U);
    for (std::uint16_t call = 1; call <= 3; ++call) {
        ASSERT_FALSE(calls_.is_empty());
        EXPECT_EQ(call_of(calls_.front()), call);
        EXPECT_EQ(as_text(Bytes(calls_.front()).subspan(wire::kHeaderBytes)), "extrapayload");
        calls_.pop();
    }
    EXPECT_TRUE(calls_.is_empty());
}

TEST_F(OutboxTest, WhatWaitsIsCountedHereAndInAll) {
    const std::size_t one = bytes_waiting(wire::kHeaderBytes + 4);
    calls_.push(header(1), {}, bytes("1234"));
    calls_.push(header(2), {}, bytes("1234"));
    replies_.push(header(3), {}, bytes("1234"));
    EXPECT_EQ(calls_.bytes(), 2 * one);
    EXPECT_EQ(replies_.bytes(), one);
    EXPECT_EQ(of_all_, 3 * one);
    calls_.pop();
    EXPECT_EQ(calls_.bytes(), one);
    EXPECT_EQ(of_all_, 2 * one);
    calls_.drop(dropped_);
    EXPECT_EQ(calls_.bytes(), 0U);
    EXPECT_EQ(of_all_, one);
    EXPECT_EQ(dropped_.some().size(), 1U);
}

TEST_F(OutboxTest, CallsBeyondTheBoundAreTooMany) {
    EXPECT_FALSE(calls_.is_full_for(kOutboxBytesMax));
    calls_.push(header(1), {}, bytes("1234"));
    EXPECT_FALSE(calls_.is_full_for(kOutboxBytesMax - calls_.bytes()));
    EXPECT_TRUE(calls_.is_full_for(kOutboxBytesMax - calls_.bytes() + 1));
}

// Whoever takes replies, however slowly, may have more of them waiting.
TEST_F(OutboxTest, RepliesBeyondTheBoundMayWaitForAPeerThatHasTakenSomeLately) {
    replies_.push(header(1), {}, bytes("1234"));
    EXPECT_FALSE(replies_.is_full_for(kOutboxBytesMax)) << "it had none to take until now";
    const TimePoint before = replies_.taken_at();
    EXPECT_NE(before, TimePoint{});
    replies_.push(header(2), {}, bytes("1234"));
    EXPECT_EQ(replies_.taken_at(), before) << "nothing was taken";
    replies_.pop();
    EXPECT_GE(replies_.taken_at(), before);
}

}  // namespace
}  // namespace rove::test
