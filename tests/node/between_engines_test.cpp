// What a node's engines know of one another, and leave for one another, without engines.
#include "peer/between_engines.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "peer/calls.hpp"
#include "rove/error.hpp"
#include "soon.hpp"
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
    ASSERT_TRUE(first_.leave(1, What::to_own_call, {kReply, {}, as_bytes("one")}));
    first_.leave_to_all(What::answered, kReply);
    EXPECT_EQ(woken, 2U);
    EXPECT_FALSE(first_.have_left_any());
    ASSERT_TRUE(second_.have_left_any());
    const auto one = second_.take(), two = second_.take();
    ASSERT_TRUE(one && two);
    EXPECT_EQ(one->what, What::to_own_call);
    EXPECT_EQ(as_text(wire::frame_in(one->frame).payload), "one");
    EXPECT_EQ(wire::frame_in(one->frame).header.call, kReply.call);
    EXPECT_EQ(two->what, What::answered);
    EXPECT_FALSE(second_.have_left_any());
    between_.wake_by(1, nullptr);
    first_.leave_to_all(What::answered, kReply);
    EXPECT_EQ(woken, 2U) << "the engine is not any more";
}

TEST_F(EnginesBetween, WhoHasLeftItIsKnown) {
    ASSERT_TRUE(second_.leave(0, What::need, {{.kind = wire::Kind::need}, {}, {}}, 7));
    const auto left = first_.take();
    ASSERT_TRUE(left);
    EXPECT_EQ(left->what, What::need);
    EXPECT_EQ(left->by.engine, 1U);
    EXPECT_EQ(left->by.peer, 7U);
}

TEST_F(EnginesBetween, AMemberWithALowerIdIsFoundAtALaterEngine) {
    BetweenEngines between(4);
    const OtherEngines each[]{{between, 0}, {between, 1}, {between, 2}, {between, 3}};
    each[1].entered(3);
    each[3].entered(2);
    EXPECT_EQ(each[0].with_lower(5, 0), 1U);
    EXPECT_EQ(each[1].with_lower(5, 2), 3U);
    EXPECT_EQ(each[3].with_lower(5, 4), std::nullopt) << "so it ends";
    EXPECT_EQ(each[0].with_lower(2, 0), std::nullopt) << "none is lower";
}

// Nobody could tell what an error in its place is the answer to. It leaves room for answers.
TEST_F(EnginesBetween, APieceOfCodeWithoutRoomIsDropped) {
    const ByteBuffer large(1UL << 20);
    const wire::Frame piece{{.kind = wire::Kind::code}, {}, large};
    for (std::size_t i = 0; i < kLeftBytesMax / 4 * 3 / (wire::kHeaderBytes + large.size()); ++i)
        ASSERT_TRUE(first_.leave(1, What::code, piece));
    EXPECT_FALSE(first_.leave(1, What::code, piece));
    EXPECT_TRUE(first_.leave(1, What::to_caller, {kReply, {}, large}));
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(second_.take());
    EXPECT_TRUE(first_.leave(1, What::code, piece));
}

TEST_F(EnginesBetween, QuestionsLeaveRoomForNotices) {
    const wire::Frame question{{.kind = wire::Kind::need}, {}, {}};
    for (std::size_t i = 0; i < kLeftSmallMax / 4 * 3; ++i) ASSERT_TRUE(first_.leave(1, What::need, question, 7));
    EXPECT_FALSE(first_.leave(1, What::need, question, 7)) << "its own engine answers it";
    EXPECT_TRUE(first_.leave(1, What::answered, {kReply, {}, {}}));
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

TEST_F(EnginesBetween, APartWithoutRoomBecomesAnErrorOfTheNodeThatSentIt) {
    const ByteBuffer large(1UL << 20);
    for (std::size_t i = 0; i < kLeftBytesMax / large.size(); ++i)
        ASSERT_TRUE(first_.leave(1, What::to_caller, {kReply, {}, large}));
    const wire::Part part{.total_bytes = 10};
    wire::FrameHeader header = kReply;
    header.kind = wire::Kind::part;
    header.handle = 7;
    ASSERT_TRUE(first_.leave(1, What::to_caller, {header, std::as_bytes(std::span(&part, 1)), large}));
    std::optional<LeftForEngine> last;
    while (auto next = second_.take()) last = std::move(next);
    ASSERT_TRUE(last);
    const wire::Frame frame = wire::frame_in(last->frame);
    EXPECT_EQ(frame.header.kind, wire::Kind::reply);
    EXPECT_EQ(frame.header.flags, wire::kError);
    EXPECT_EQ(frame.header.handle, 7U);
    EXPECT_TRUE(frame.extra.empty());
}

// What their peers send waits in its mailboxes, and no answer is lost.
TEST_F(EnginesBetween, OthersWaitForOneThatIsBehind) {
    const ByteBuffer large(1UL << 20);
    const auto is_behind_after = [this](std::size_t most, const auto& leave) {
        for (std::size_t i = 0; i < most; ++i) leave();
        EXPECT_FALSE(first_.must_wait());
        leave();
        const bool waits = first_.must_wait();
        leave();
        while (second_.take()) continue;
        EXPECT_FALSE(first_.must_wait());
        return waits;
    };
    const auto leave_notice = [this] { ASSERT_TRUE(first_.leave(1, What::answered, {kReply, {}, {}})); };
    const auto leave_answer = [&] { ASSERT_TRUE(first_.leave(1, What::to_caller, {kReply, {}, large})); };
    // Several times: it is not waited for where a busy machine lets too much time pass.
    EXPECT_TRUE(soon([&] { return is_behind_after(kLeftSmallMax / 2, leave_notice); }));
    EXPECT_TRUE(
        soon([&] { return is_behind_after(kLeftBytesMax / 2 / (large.size() + wire::kHeaderBytes), leave_answer); }));
}

TEST_F(EnginesBetween, NobodyWaitsForOneThatTakesNothing) {
    for (std::size_t i = 0; i <= kLeftSmallMax / 2; ++i) ASSERT_TRUE(first_.leave(1, What::answered, {kReply, {}, {}}));
    EXPECT_TRUE(soon([this] { return !first_.must_wait(); }));
    ASSERT_TRUE(first_.leave(1, What::answered, {kReply, {}, {}}));
    EXPECT_TRUE(soon([this] {
        EXPECT_TRUE(first_.leave(1, What::answered, {kReply, {}, {}}));
        return second_.take() && first_.must_wait();
    })) << "it takes some again";
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
