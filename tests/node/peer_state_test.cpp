// PeerState alone.
#include "peer/peer_state.hpp"

#include <gtest/gtest.h>

#include "neighbours.hpp"

namespace rove::test {
namespace {

TEST(PeerState, KnowsAPlainReply) {
    std::size_t outbox_bytes = 0;
    PeerState peer(outbox_bytes);
    meet(peer, {.my_id = 3}, 0);
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

// ---- from a meeting to the end of its link, and beyond

class PeerLife : public testing::Test {
protected:
    // With a link that goes nowhere.
    PeerState& met() {
        PeerIdentity as{.id = 2, .my_id = 0, .member = true, .address = "127.0.0.1:7002", .has_residents = true};
        meet(peer_, std::move(as), 2, link_, [this](const Error& why) { reasons_.push_back(why.message()); });
        return peer_;
    }
    static Error gone(const std::string& why) { return {ErrorCode::disconnected, why}; }

    std::size_t outbox_bytes_ = 0;
    DroppedBytes dropped_;
    PeerState peer_{outbox_bytes_};
    std::shared_ptr<NoLink> link_ = std::make_shared<NoLink>();
    std::vector<std::string> reasons_;  // why the control connection ends
};

TEST_F(PeerLife, APeerThatHasNotBeenMetHasNothing) {
    EXPECT_EQ(peer_.meeting(), 0U);
    EXPECT_EQ(peer_.link(), nullptr);
    EXPECT_EQ(peer_.id(), kNoNode);
    EXPECT_EQ(peer_.back(), kNoNode);
    EXPECT_FALSE(peer_.linked() || peer_.clear_way() || peer_.lost());
    EXPECT_FALSE(peer_.awaits_goodbye(Clock::now()));
    EXPECT_EQ(peer_.end_meeting(dropped_), nullptr);
}

TEST_F(PeerLife, AMeetingMakesItWhoItIs) {
    met();
    EXPECT_NE(peer_.meeting(), 0U);
    EXPECT_EQ(peer_.link(), link_);
    EXPECT_EQ(peer_.lane(), fabric::Lane::none);
    EXPECT_TRUE(peer_.linked() && peer_.clear_way());
    EXPECT_TRUE(peer_.is_member() && peer_.is_fellow() && peer_.has_residents());
    EXPECT_FALSE(peer_.is_foreign());
}

TEST_F(PeerLife, TheNextMeetingReplacesWhoItWasAsAWholeButForAnAddressThatIsNotSaid) {
    const std::uint64_t first = met().meeting();
    (void)peer_.end_meeting(dropped_);
    meet(peer_, {.id = 0, .my_id = kClientBit | 3}, kForeignBit | 1);
    EXPECT_GT(peer_.meeting(), first);
    EXPECT_EQ(peer_.id(), 0U);
    EXPECT_EQ(peer_.back(), kForeignBit | 1);
    EXPECT_TRUE(peer_.is_foreign());
    EXPECT_FALSE(peer_.is_member() || peer_.is_fellow() || peer_.has_residents());
    EXPECT_EQ(peer_.identity().address, "127.0.0.1:7002");
}

TEST_F(PeerLife, TheFirstReasonThatItIsLostStays) {
    met().lose(gone("its cable was pulled"));
    EXPECT_FALSE(peer_.linked());
    EXPECT_NE(peer_.meeting(), 0U) << "the leader ends the link";
    peer_.lose(gone("it was met again"));
    EXPECT_EQ(peer_.lost()->message(), "its cable was pulled");
    EXPECT_TRUE(peer_.gone().empty()) << "its end has not begun";
    peer_.begin_end();
    EXPECT_EQ(peer_.gone(), "its cable was pulled");
    EXPECT_EQ(peer_.end_meeting(dropped_), link_);
    EXPECT_FALSE(peer_.lost());
    EXPECT_EQ(peer_.gone(), "its cable was pulled") << "why there is no link";
}

TEST_F(PeerLife, ALinkThatEndsUnnoticedHasItsOwnReason) {
    met();
    link_->break_with(Error(ErrorCode::invalid, "it broke a rule"));
    peer_.begin_end();
    EXPECT_EQ(peer_.lost()->code(), ErrorCode::disconnected);
    EXPECT_EQ(peer_.gone(), "it broke a rule");
}

// A step of the end that finds no memory is repeated, and has left the routes by then.
TEST_F(PeerLife, WhetherAMemberLeavesIsSaidOnce) {
    EXPECT_TRUE(met().leaves_as_member(true));
    EXPECT_TRUE(peer_.leaves_as_member(false));
    (void)peer_.end_meeting(dropped_);
    met();
    EXPECT_FALSE(peer_.leaves_as_member(false)) << "another link";
}

TEST_F(PeerLife, ItsConnectionIsEndedOnceAMeeting) {
    met().hang_up(gone("it went"));
    peer_.hang_up(gone("it went again"));
    EXPECT_EQ(reasons_, std::vector<std::string>{"it went"});
    (void)peer_.end_meeting(dropped_);
    met().hang_up(gone("the next link"));
    EXPECT_EQ(reasons_.size(), 2U);
    (void)peer_.end_meeting(dropped_);
    peer_.hang_up(gone("nobody"));
    EXPECT_EQ(reasons_.size(), 2U);
}

TEST_F(PeerLife, AHangUpWithoutMemoryIsTriedAgain) {
    unsigned tries = 0;
    meet(peer_, {}, 0, link_, [&tries](const Error&) {
        if (++tries == 1) throw std::bad_alloc();
    });
    EXPECT_THROW(peer_.hang_up(gone("it went")), std::bad_alloc);
    for (int i = 0; i < 2; ++i) peer_.hang_up(gone("it went"));
    EXPECT_EQ(tries, 2U);
}

TEST_F(PeerLife, AGoodbyeIsWaitedForFromTheFirstLookOn) {
    const TimePoint now = Clock::now();
    EXPECT_FALSE(met().awaits_goodbye(now)) << "the link is well";
    link_->end_transport("the stream's end");
    EXPECT_TRUE(peer_.awaits_goodbye(now));
    EXPECT_EQ(peer_.goodbye_until(), now + kGoodbyeWait);
    EXPECT_TRUE(peer_.awaits_goodbye(now + kGoodbyeWait - std::chrono::milliseconds(1)));
    EXPECT_FALSE(peer_.awaits_goodbye(now + kGoodbyeWait));
    (void)peer_.end_meeting(dropped_);
    EXPECT_TRUE(met().awaits_goodbye(now + kGoodbyeWait)) << "another meeting";
    peer_.lose(gone("it left"));
    EXPECT_FALSE(peer_.awaits_goodbye(now + kGoodbyeWait)) << "it has been said";
}

TEST_F(PeerLife, WithItsLinkGoesAllThatTheOtherEndMayHaveForgotten) {
    const Digest package{};
    const FunctionId function =
        FunctionId::from(Bytes(ByteBuffer(sizeof(FunctionId), std::byte{1})).first<sizeof(FunctionId)>());
    met();
    for (const fabric::Traffic traffic : {fabric::Traffic::calls, fabric::Traffic::prompt})
        peer_.outbox_of(traffic).push({.kind = wire::Kind::ping}, {}, {});
    peer_.code.sent.insert(package);
    peer_.code.refuse(package, Error(ErrorCode::overloaded, "no room"));
    peer_.code.bindings.expect();
    peer_.code.bindings.learn(function, 7);
    for (unsigned i = 0; i < kInlineSends; ++i) EXPECT_TRUE(peer_.code.count_inline(function));
    EXPECT_FALSE(peer_.code.count_inline(function));
    peer_.calls.parked.emplace();
    peer_.calls.set_waits_to_stage(true);
    peer_.calls.look(Clock::now(), true);
    EXPECT_TRUE(peer_.calls.note_progress(9));
    EXPECT_FALSE(peer_.calls.note_progress(9));
    peer_.sends.sent_on.add({.position = 1, .origin = 3, .call = 5, .generation = 1}, true);
    const std::uint64_t number = peer_.sends.next_in_parts();
    peer_.sends.open_frame();
    EXPECT_TRUE(peer_.has_frames_waiting() && peer_.sends.has_open_frame_of_this_thread() && !peer_.clear_way());
    EXPECT_GT(outbox_bytes_, 0U);

    EXPECT_EQ(peer_.end_meeting(dropped_), link_);
    EXPECT_EQ(peer_.meeting(), 0U);
    EXPECT_EQ(peer_.link(), nullptr);
    EXPECT_FALSE(peer_.has_frames_waiting());
    EXPECT_EQ(outbox_bytes_, 0U);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(dropped_.some().size(), 1U) << "freed a little at a time";
    EXPECT_FALSE(peer_.code.sent.contains(package));
    EXPECT_EQ(peer_.code.refusal_of(package), nullptr);
    EXPECT_FALSE(peer_.code.bindings.handle_of(function));
    EXPECT_TRUE(peer_.code.count_inline(function));
    EXPECT_FALSE(peer_.calls.parked || peer_.calls.waits_to_stage() || peer_.calls.are_quick());
    EXPECT_TRUE(peer_.calls.note_progress(9)) << "of another mailbox";
    EXPECT_TRUE(peer_.sends.sent_on.empty());
    EXPECT_FALSE(peer_.sends.has_open_frame());
    EXPECT_GT(peer_.sends.next_in_parts(), number) << "a number means one payload, over all links";
    EXPECT_TRUE(met().clear_way());
}

TEST_F(PeerLife, ItsCountersAddUpOverAllLinks) {
    Neighbours neighbours;
    PeerState& peer = neighbours.add(2);
    const auto send = [&] {
        value_or_throw(neighbours.sender.send(peer, fabric::Traffic::calls, {.kind = wire::Kind::ping}, {}, {}));
    };
    send();
    peer.count_code_sent(100);
    (void)peer.end_meeting(dropped_);
    EXPECT_EQ(peer.all_counters().frames_sent, 1U);
    (void)peer.end_meeting(dropped_);
    EXPECT_EQ(peer.all_counters().frames_sent, 1U) << "once";
    meet(peer, peer.identity(), 2, neighbours.open().first);
    send();
    EXPECT_EQ(peer.all_counters().frames_sent, 2U);
    EXPECT_EQ(peer.all_counters().bytes_sent, 2 * wire::kHeaderBytes);
    peer.count_code_sent(10);
    EXPECT_EQ(peer.all_counters().code_bytes_sent, 110U);
}

TEST(CodeBetween, ARefusalIsOfTheLastPackageUntilThereIsRoomForIt) {
    CodeBetween code;
    const Digest one = digest_of({"one"}), two = digest_of({"two"});
    code.refuse(one, Error(ErrorCode::overloaded, "no room"));
    code.accept(two);
    ASSERT_NE(code.refusal_of(one), nullptr);
    EXPECT_EQ(code.refusal_of(one)->message(), "no room");
    code.refuse(two, Error(ErrorCode::overloaded, "no room either"));
    EXPECT_EQ(code.refusal_of(one), nullptr);
    code.accept(two);
    EXPECT_EQ(code.refusal_of(two), nullptr);
}

using PeerLifeDeathTest = PeerLife;
TEST_F(PeerLifeDeathTest, ALinkIsNeitherReplacedNorLostNorEndedWhereThereIsNone) {
    EXPECT_DEATH(peer_.lose(gone("it went")), "");
    EXPECT_DEATH(peer_.begin_end(), "");
    met();
    EXPECT_DEATH(met(), "");
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
