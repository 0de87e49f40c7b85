// Small parts of a node, each by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "engine/local_frames.hpp"
#include "engine/room_waits.hpp"
#include "idle_lead.hpp"
#include "lead/housekeeping_clock.hpp"
#include "neighbours.hpp"
#include "peer/frame_checks.hpp"
#include "peer/in_parts.hpp"
#include "peer/lately_known.hpp"
#include "peer/payload_parts.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using fabric::Traffic;
using wire::Kind;

TEST(HousekeepingClockTest, IsDueAtOnceAndThenByFramesAndTime) {
    static TimePoint now{};
    now = Clock::now();
    HousekeepingClock clock([] { return now; });
    EXPECT_TRUE(clock.advance(0)) << "the first time";
    EXPECT_FALSE(clock.advance(0));
    EXPECT_FALSE(clock.advance(HousekeepingClock::kSteps)) << "the clock was looked at, and it is too soon";
    now += HousekeepingClock::kEvery;
    EXPECT_FALSE(clock.advance(0)) << "time alone is not looked at";
    EXPECT_TRUE(clock.advance(HousekeepingClock::kSteps));
    clock.hurry();
    EXPECT_TRUE(clock.advance(0)) << "something waits for it";
    clock.look_soon();
    EXPECT_FALSE(clock.advance(0)) << "a look is not haste";
}

TEST(InPartsTest, CountsPartsThatFollowOneAnotherToTheEnd) {
    InParts whole(10);
    EXPECT_TRUE(whole.take(0, 10, 4));
    EXPECT_FALSE(whole.take(0, 10, 4)) << "the same one again";
    EXPECT_FALSE(whole.take(5, 10, 1)) << "with a gap";
    EXPECT_FALSE(whole.take(4, 12, 6)) << "of something larger";
    EXPECT_FALSE(whole.take(4, 10, 7)) << "beyond its end";
    EXPECT_FALSE(whole.take(4, 10, ~std::size_t{0})) << "with bytes that wrap around";
    EXPECT_EQ(whole.arrived(), 4U);
    EXPECT_FALSE(whole.is_whole());
    EXPECT_TRUE(whole.take(4, 10, 6));
    EXPECT_TRUE(whole.is_whole());
    EXPECT_FALSE(whole.take(10, 10, 1));
}

TEST(LatelyKnownTest, ForgetsWhatWasSetLongestAgo) {
    LatelyKnown<int, int, 8> known;
    EXPECT_TRUE(known.empty());
    for (int key = 0; key < 100; ++key) {
        known.set(key, -key);
        for (int late = std::max(0, key - 3); late <= key; ++late) {
            ASSERT_NE(known.find(late), nullptr) << late << " of " << key;
            EXPECT_EQ(*known.find(late), -late);
        }
        int found = 0;
        for (int old = 0; old <= key; ++old) found += known.find(old) != nullptr ? 1 : 0;
        EXPECT_LE(found, 8);
    }
    known.set(99, 5);
    EXPECT_EQ(*known.find(99), 5) << "the newer value";
    known.clear();
    EXPECT_TRUE(known.empty());
    EXPECT_EQ(known.find(99), nullptr);
}

class LocalFramesTest : public testing::Test {
protected:
    Status add(std::size_t bytes) {
        const Hold hold(idle_.lead.mutex());
        return local_.add({.node = 0, .wants_reply = false}, FunctionId{}, ByteBuffer(bytes, std::byte{7}));
    }
    IdleLead idle_;
    LocalFrames local_{idle_.lead, &IdleLead::name};
};

TEST_F(LocalFramesTest, GivesThemInTheirOrderAsCallsById) {
    for (const std::size_t bytes : {1U, 2U, 3U}) ASSERT_TRUE(add(bytes));
    const Hold hold(idle_.lead.mutex());
    for (const std::size_t bytes : {1U, 2U, 3U}) {
        ASSERT_FALSE(local_.is_empty());
        const std::list<ByteBuffer> first = local_.take_first();
        const wire::Frame frame = wire::frame_in(first.front());
        EXPECT_EQ(frame.header.kind, Kind::call);
        EXPECT_EQ(frame.header.flags, wire::kNoReply | wire::kById);
        EXPECT_EQ(frame.payload.size(), bytes);
    }
    EXPECT_TRUE(local_.is_empty());
}

TEST_F(LocalFramesTest, OneThatIsPutBackIsTheFirstAgain) {
    for (const std::size_t bytes : {1U, 2U}) ASSERT_TRUE(add(bytes));
    const Hold hold(idle_.lead.mutex());
    local_.put_back(local_.take_first());
    EXPECT_EQ(wire::frame_in(local_.take_first().front()).payload.size(), 1U);
}

TEST_F(LocalFramesTest, AreBounded) {
    std::size_t added = 0;
    Status last;
    while ((last = add(1 << 20))) ASSERT_LT(++added, 10'000U);
    EXPECT_EQ(last.error().code(), ErrorCode::overloaded);
    EXPECT_GE(added << 20U, kOutboxBytesMax / 2);
    EXPECT_LE(added << 20U, kOutboxBytesMax);
    {
        const Hold hold(idle_.lead.mutex());
        local_.put_back(local_.take_first());
    }
    EXPECT_FALSE(add(1 << 20)) << "what is put back counts again";
    {
        const Hold hold(idle_.lead.mutex());
        (void)local_.take_first();
    }
    EXPECT_TRUE(add(1 << 20)) << "there is room again";
}

class FrameChecksTest : public testing::Test {
protected:
    std::string wrong_with(const PeerState& from, const wire::FrameHeader& header, Traffic among) {
        const auto wrong = checks_.wrong_with(from, {header, {}, {}}, among);
        return wrong ? wrong->message() : std::string();
    }
    NodeOptions options_{.listen = "127.0.0.1:0"};
    Neighbours neighbours_;
    FrameChecks checks_{options_, neighbours_.routes};
};

TEST_F(FrameChecksTest, APlainFrameIsMadeByWhoSendsIt) {
    const PeerState& peer = neighbours_.add(2);
    const auto plain = [&](const wire::FrameHeader& header) { return FrameChecks::is_plain(peer, {header, {}, {}}); };
    EXPECT_TRUE(plain({.kind = Kind::call, .node = 2}));
    EXPECT_TRUE(plain({.kind = Kind::call, .flags = wire::kNoReply, .node = 2}));
    EXPECT_FALSE(plain({.kind = Kind::call, .node = 3})) << "in another's name";
    EXPECT_FALSE(plain({.kind = Kind::call, .flags = wire::kParts, .node = 2}));
    EXPECT_TRUE(plain({.kind = Kind::ping, .node = 2}));
    EXPECT_FALSE(plain({.kind = Kind::ping, .node = 3})) << "in another's name";
    EXPECT_FALSE(plain({.kind = Kind::batch, .flags = wire::kNoReply, .node = 2}));
}

TEST_F(FrameChecksTest, OnlyMembersSpeakForOthers) {
    const PeerState& member = neighbours_.add(2);
    const PeerState& client = neighbours_.add(kClientBit | 1);
    EXPECT_EQ(wrong_with(member, {.kind = Kind::call, .node = 3}, Traffic::calls), "");
    EXPECT_NE(wrong_with(client, {.kind = Kind::call, .node = 3}, Traffic::calls).find("names another caller"),
              std::string::npos);
    EXPECT_EQ(wrong_with(client, {.kind = Kind::call, .node = kClientBit | 1}, Traffic::calls), "");
    EXPECT_NE(wrong_with(client, {.kind = Kind::reply, .node = 3}, Traffic::prompt).find("somebody else's call"),
              std::string::npos);
    EXPECT_EQ(wrong_with(member, {.kind = Kind::reply, .node = 3}, Traffic::prompt), "");
}

class PayloadPartsTest : public testing::Test {
protected:
    bool add(PeerState& from, std::uint64_t number, std::size_t offset, std::size_t total, std::size_t bytes) {
        const wire::Part part{.number = number,
                              .offset = static_cast<std::uint32_t>(offset),
                              .total_bytes = static_cast<std::uint32_t>(total)};
        const ByteBuffer payload(bytes, std::byte{1});
        return parts_.add(from, {{.kind = Kind::part}, std::as_bytes(std::span(&part, 1)), payload});
    }
    Neighbours neighbours_;
    const std::shared_ptr<SpareMemory> memory_ = std::make_shared<SpareMemory>();
    PayloadParts parts_{neighbours_.peers, memory_, &IdleLead::name};
};

TEST_F(PayloadPartsTest, ArePutTogetherAndCounted) {
    PeerState& peer = neighbours_.add(2);
    ASSERT_TRUE(add(peer, 1, 0, 300'000, 200'000));
    EXPECT_GE(parts_.bytes(), 300'000U);
    EXPECT_FALSE(parts_.take(peer, {.number = 1, .total_bytes = 300'000})) << "it is not whole";
    ASSERT_TRUE(add(peer, 1, 200'000, 300'000, 100'000));
    const auto whole = parts_.take(peer, {.number = 1, .total_bytes = 300'000});
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->bytes().size(), 300'000U);
    EXPECT_EQ(parts_.bytes(), 0U);
}

TEST_F(PayloadPartsTest, WhatIsTakenBackOrLeftIsForgotten) {
    PeerState& peer = neighbours_.add(2);
    ASSERT_TRUE(add(peer, 1, 0, 300'000, 1000));
    ASSERT_TRUE(add(peer, 1, 0, 0, 0)) << "it is taken back";
    EXPECT_EQ(parts_.bytes(), 0U);
    ASSERT_TRUE(add(peer, 2, 0, 300'000, 1000));
    ASSERT_TRUE(add(peer, 3, 0, 300'000, 1000));
    parts_.forget(peer, 2);
    EXPECT_GT(parts_.bytes(), 0U);
    parts_.forget_all(peer);
    EXPECT_EQ(parts_.bytes(), 0U);
}

TEST_F(PayloadPartsTest, WhoSendsPartsOutOfTheirOrderIsCutOff) {
    PeerState& peer = neighbours_.add(2);
    ASSERT_TRUE(add(peer, 1, 0, 300'000, 1000));
    EXPECT_FALSE(add(peer, 1, 2000, 300'000, 1000));
    ASSERT_NE(peer.link()->broken(), nullptr);
    EXPECT_NE(peer.link()->broken()->message().find("out of its order"), std::string::npos);
}

TEST_F(PayloadPartsTest, WhatAllTogetherHaveNoRoomForWaitsInItsMailbox) {
    constexpr std::size_t kLargest = wire::kMessageBytesMax;
    for (NodeId id = 1; id <= 4; ++id) {
        PeerState& peer = neighbours_.add(id == 1 ? kClientBit | 1 : kClientBit | id);
        for (std::uint64_t number = 1; number <= kStagedBytesMax / kLargest; ++number)
            parts_.begin_elsewhere(peer, {.number = number, .total_bytes = kLargest}, Clock::now());
    }
    EXPECT_EQ(parts_.bytes(), kAllStagedBytesMax);
    PeerState& late = neighbours_.add(kClientBit | 9);
    EXPECT_FALSE(parts_.may_begin_elsewhere(late, {.number = 1, .total_bytes = 1000}));
    EXPECT_FALSE(add(late, 1, 0, 300'000, 1000));
    EXPECT_TRUE(late.calls.waits_to_stage());
    EXPECT_EQ(late.link()->broken(), nullptr) << "it is not to blame";
    parts_.forget_all(*neighbours_.peers[0]);
    EXPECT_TRUE(add(late, 1, 0, 300'000, 1000));
    EXPECT_FALSE(late.calls.waits_to_stage());
}

class RoomWaitsTest : public testing::Test {
protected:
    // Until its mailbox of calls has no room any more.
    void fill(PeerState& peer) {
        const ByteBuffer payload(60'000);
        while (peer.outbox_of(Traffic::calls).is_empty())
            value_or_throw(neighbours_.sender.send(peer, Traffic::calls, {.kind = Kind::call}, {}, payload));
    }
    // It takes all that has come.
    void make_room(PeerState& peer) REQUIRES(lock_of<EngineLock>) {
        (void)neighbours_.received_by(peer, Traffic::calls);
        EXPECT_GT(neighbours_.sender.flush(peer), 0U);
    }
    std::string wait(PeerState& peer, Deadline deadline, Traffic traffic = Traffic::calls) {
        Hold hold(idle_.lead.mutex());
        const Status room = rooms_.wait(peer, hold.lock(), traffic, 1000, deadline, {});
        return room ? "room" : std::string(to_string(room.error().code())) + ": " + room.error().message();
    }
    std::size_t count() {
        return idle_.under_lock([this]() REQUIRES(lock_of<EngineLock>) { return rooms_.count(); });
    }
    static Deadline soon_over() { return Clock::now() + std::chrono::milliseconds(10); }

    IdleLead idle_;
    Neighbours neighbours_;
    RoomWaits rooms_{idle_.lead, idle_.runner, &IdleLead::name};
};

TEST_F(RoomWaitsTest, WhoWaitsIsToldWhenThereIsRoom) {
    PeerState& peer = neighbours_.add(2);
    EXPECT_EQ(wait(peer, std::nullopt), "room") << "at once";
    fill(peer);
    const std::string late = wait(peer, soon_over());
    EXPECT_TRUE(late.starts_with("timed_out: the mailbox of node 2 had no room")) << late;
    EXPECT_EQ(count(), 0U);
    EXPECT_EQ(wait(peer, std::nullopt, Traffic::prompt), "room") << "in the other mailbox";
    std::string waited[2];
    std::thread waiting[2];
    for (int i = 0; i < 2; ++i) waiting[i] = std::thread([&, i] { waited[i] = wait(peer, std::nullopt); });
    EXPECT_TRUE(soon([&] { return count() == 2; }));
    {
        const Hold hold(idle_.lead.mutex());
        EXPECT_FALSE(rooms_.is_empty());
        EXPECT_EQ(rooms_.tell(), 0U);
        make_room(peer);
        EXPECT_EQ(rooms_.tell(), 2U);
        EXPECT_EQ(rooms_.tell(), 0U) << "they know";
        idle_.lead.wake();
    }
    for (std::thread& each : waiting) each.join();
    for (const std::string& each : waited) EXPECT_EQ(each, "room");
    EXPECT_EQ(count(), 0U);
}

TEST_F(RoomWaitsTest, AFrameThatIsFilledInPlaceHasTheRoomOfCalls) {
    PeerState& peer = neighbours_.add(2);
    peer.sends.open_frame();
    EXPECT_TRUE(wait(peer, soon_over()).starts_with("timed_out: "));
    EXPECT_EQ(wait(peer, std::nullopt, Traffic::prompt), "room");
    peer.sends.close_frame(true);
    EXPECT_EQ(wait(peer, std::nullopt), "room");
}

TEST_F(RoomWaitsTest, TheEndOfTheLinkOrOfTheNodeEndsTheWait) {
    PeerState &peer = neighbours_.add(2), &other = neighbours_.add(3);
    for (PeerState* const each : {&peer, &other}) fill(*each);
    std::string of_peer, of_other;
    std::thread waits_for_peer([&] { of_peer = wait(peer, std::nullopt); });
    std::thread waits_for_other([&] { of_other = wait(other, std::nullopt); });
    EXPECT_TRUE(soon([&] { return count() == 2; }));
    {
        const Hold hold(idle_.lead.mutex());
        peer.lose(Error(ErrorCode::disconnected, "it went"));
        EXPECT_EQ(rooms_.tell(), 1U) << "there is no room to wait for";
        idle_.lead.wake();
    }
    waits_for_peer.join();
    EXPECT_TRUE(of_peer.starts_with("disconnected: node 2 was lost while a call waited for room")) << of_peer;
    {
        const Hold hold(idle_.lead.mutex());
        idle_.runner.end_waits();
        idle_.lead.wake();
        idle_.lead.tell_waiting();
    }
    waits_for_other.join();
    EXPECT_TRUE(of_other.starts_with("cancelled: ")) << of_other;
}

}  // namespace
}  // namespace rove::test
