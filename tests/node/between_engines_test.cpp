// What a node's engines know of one another, and leave for one another, without engines.
#include "peer/between_engines.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "peer/calls.hpp"
#include "rove/error.hpp"
#include "wire/kinds.hpp"

namespace rove::test {
namespace {

using What = LeftForEngine::What;

const wire::FrameHeader kReply{.kind = wire::Kind::reply, .generation = 5, .node = client_id(0, 3), .call = 9};

class EnginesBetween : public testing::Test {
protected:
    BetweenEngines between_{2};
    const OtherEngines first_{between_, 0}, second_{between_, 1};
};

TEST_F(EnginesBetween, ALinkIsFoundByTheOther) {
    second_.entered(7);
    EXPECT_EQ(first_.with_link(7), 1U);
    EXPECT_EQ(second_.with_link(7), std::nullopt) << "it is its own";
    EXPECT_EQ(first_.with_link(8), std::nullopt);
    first_.left(7);
    EXPECT_EQ(first_.with_link(7), 1U) << "it never was the first one's";
    second_.left(7);
    EXPECT_EQ(first_.with_link(7), std::nullopt);
}

TEST_F(EnginesBetween, AGenerationTellsWhoHasMadeTheCall) {
    const BetweenEngines three(3);
    EXPECT_EQ(three.generation_step(), 4U);
    EXPECT_EQ(three.with_call(3), std::nullopt) << "there is no such engine";
    for (const std::uint32_t random : {0U, 1U, 6U, ~0U}) {
        CallTable table({second_.first_generation(random), second_.generation_step()});
        for (unsigned i = 0; i < 3; ++i) {
            const CallId call = value_or_throw(table.begin(nullptr));
            EXPECT_EQ(first_.with_call(call.generation), 1U);
            EXPECT_EQ(second_.with_call(call.generation), std::nullopt);
            table.release(call);
        }
    }
}

TEST_F(EnginesBetween, WhatIsLeftIsTakenOnceAndInItsOrder) {
    unsigned woken = 0;
    between_.wake_by(1, [&woken] { ++woken; });
    EXPECT_FALSE(second_.have_left_any());
    EXPECT_EQ(second_.take(), std::nullopt);
    ASSERT_TRUE(first_.leave(1, What::to_own_call, {kReply, {}, as_bytes("one")}, /*by_fellow=*/true));
    first_.leave_to_all(What::answered, kReply);
    EXPECT_EQ(woken, 2U);
    EXPECT_FALSE(first_.have_left_any());
    ASSERT_TRUE(second_.have_left_any());
    const auto one = second_.take(), two = second_.take();
    ASSERT_TRUE(one && two);
    EXPECT_EQ(one->what, What::to_own_call);
    EXPECT_TRUE(one->by_fellow);
    EXPECT_EQ(as_text(wire::frame_in(one->frame).payload), "one");
    EXPECT_EQ(wire::frame_in(one->frame).header.call, kReply.call);
    EXPECT_EQ(two->what, What::answered);
    EXPECT_FALSE(second_.have_left_any());
    between_.wake_by(1, nullptr);
    first_.leave_to_all(What::answered, kReply);
    EXPECT_EQ(woken, 2U) << "the engine is not any more";
}

// Its caller must not wait for ever.
TEST_F(EnginesBetween, AnAnswerWithoutRoomBecomesAnError) {
    const ByteBuffer large(1UL << 20);
    const std::size_t whole = kLeftBytesMax / (wire::kHeaderBytes + large.size());
    for (std::size_t i = 0; i <= whole; ++i) ASSERT_TRUE(first_.leave(1, What::to_caller, {kReply, {}, large}));
    for (std::size_t i = 0; i < whole; ++i) EXPECT_EQ(second_.take()->frame.size(), wire::kHeaderBytes + large.size());
    const auto error = second_.take();
    ASSERT_TRUE(error);
    const wire::Frame frame = wire::frame_in(error->frame);
    EXPECT_EQ(frame.header.flags, wire::kError);
    EXPECT_EQ(frame.header.status, static_cast<std::uint8_t>(ErrorCode::overloaded));
    EXPECT_EQ(frame.header.call, kReply.call);
    EXPECT_NE(as_text(frame.payload).find("dropped on its way"), std::string::npos);
    ASSERT_TRUE(first_.leave(1, What::to_caller, {kReply, {}, large}));
    EXPECT_EQ(second_.take()->frame.size(), wire::kHeaderBytes + large.size()) << "there is room again";
}

TEST_F(EnginesBetween, NoticesAreBounded) {
    for (std::size_t i = 0; i < kLeftSmallMax; ++i) ASSERT_TRUE(first_.leave(1, What::answered, {kReply, {}, {}}));
    EXPECT_FALSE(first_.leave(1, What::answered, {kReply, {}, {}}));
    ASSERT_TRUE(second_.take());
    EXPECT_TRUE(first_.leave(1, What::answered, {kReply, {}, {}}));
}

// As a leader does: it looks after it has begun to work, and sleeps only where nobody has woken it since.
TEST_F(EnginesBetween, NobodySleepsWhileSomethingIsLeft) {
    constexpr unsigned kRounds = 20'000;
    std::atomic<bool> woken{false};
    between_.wake_by(1, [&woken] { woken.store(true, std::memory_order_relaxed); });
    std::thread leaves([this] {
        for (unsigned i = 0; i < kRounds; ++i) first_.leave_to_all(What::answered, kReply);
    });
    for (unsigned taken = 0; taken < kRounds;) {
        woken.store(false, std::memory_order_relaxed);
        while (second_.have_left_any()) taken += second_.take() ? 1 : 0;
        const auto asleep = std::chrono::steady_clock::now();
        while (taken < kRounds && !woken.load(std::memory_order_relaxed)) {
            std::this_thread::yield();
            ASSERT_LT(std::chrono::steady_clock::now() - asleep, std::chrono::seconds(30)) << "at " << taken;
        }
    }
    leaves.join();
}

}  // namespace
}  // namespace rove::test
