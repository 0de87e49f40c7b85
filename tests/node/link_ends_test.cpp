// LinkEnds alone: the end of a link, and of the calls and replies that were on their way over it, with peers whose other end the test
// reads.
#include "engine/link_ends.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "answering_parts.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;
using fabric::Traffic;
using wire::Kind;

class LinkEndsTest : public AnsweringParts {
protected:
    void lose(PeerState& peer, const std::string& why) {
        const Hold hold(idle_.lead.mutex());
        ends_.lose(peer, Error(ErrorCode::disconnected, why));
        ends_.clean_up(peer);
    }
    // A call of `caller` that this node sends on to the peer.
    void send_on(PeerState& to, NodeId caller) {
        const Hold hold(idle_.lead.mutex());
        value_or_throw(neighbours_.sender.send(to, Traffic::calls, wire::header_of(call_from(caller)), {}, {}));
    }
};

TEST_F(LinkEndsTest, ThePeersCallsEndAndItsLinkIsKeptUntilNothingRuns) {
    PeerState& peer = neighbours_.add(2);
    const CallId own = call(peer);
    const std::weak_ptr<fabric::Link> link = peer.link();
    lose(peer, "its cable was pulled");
    EXPECT_EQ(end_of(own), "disconnected: node 2 was lost during the call, which may have run (its cable was pulled)");
    EXPECT_EQ(peer.gone(), "its cable was pulled");
    EXPECT_EQ(peer.link(), nullptr);
    EXPECT_EQ(neighbours_.routes.member(2), nullptr);
    EXPECT_FALSE(link.expired()) << "a function may still run on a frame of it";
    const Hold hold(idle_.lead.mutex());
    ends_.drop_buried();
    EXPECT_TRUE(link.expired());
    EXPECT_EQ(ends_.count(), 1U);
}

TEST_F(LinkEndsTest, RepliesThatHaveArrivedCountAndComeFirst) {
    PeerState& peer = neighbours_.add(2);
    const CallId own = call(peer);
    neighbours_.send_from(peer, Traffic::prompt,
                          {.kind = Kind::reply,
                           .handle = 2,
                           .generation = own.generation,
                           .node = neighbours_.routes.id(),
                           .call = own.slot},
                          as_bytes(std::string_view("just in time")));
    lose(peer, "it went");
    EXPECT_EQ(end_of(own), "value: just in time");
}

TEST_F(LinkEndsTest, WhatWasSentOnToAClientThatGoesEndsForItsCaller) {
    PeerState& caller = neighbours_.add(3);
    PeerState& client = neighbours_.add(kClientBit | 1);
    send_on(client, 3);
    lose(client, "it went");
    const auto received = neighbours_.received_by(caller);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received.front().header.flags, wire::kError);
    EXPECT_EQ(received.front().header.call, 5);
    EXPECT_EQ(received.front().header.status, static_cast<std::uint8_t>(ErrorCode::disconnected));
}

TEST_F(LinkEndsTest, WhatAMemberHasTakenIsItsOwnToAnswerUntilItsProcessIsGone) {
    PeerState& caller = neighbours_.add(3);
    PeerState& member = neighbours_.add(2);
    send_on(member, 3);
    const ByteBuffer more(60'000);
    for (int i = 0; i < 100 && member.link()->lines_credited(Traffic::calls) == 0; ++i) {
        value_or_throw(neighbours_.sender.send(member, Traffic::calls, wire::header_of(call_from(3, false)), {}, more));
        (void)neighbours_.received_by(member, Traffic::calls);
    }
    ASSERT_GT(member.link()->lines_credited(Traffic::calls), 0U);
    lose(member, "its cable was pulled");
    EXPECT_TRUE(neighbours_.received_by(caller).empty()) << "it may answer yet, by another way";
    const Hold hold(idle_.lead.mutex());
    neighbours_.absent.gone(2, "it crashed", Clock::now());
    ends_.end_orphans();
    const auto received = neighbours_.received_by(caller);
    ASSERT_EQ(received.size(), 1U);
    const std::string why(as_text(Bytes(received.front().payload)));
    EXPECT_TRUE(contains(why, "its cable was pulled); the call had been sent on there, and may have run")) << why;
}

TEST_F(LinkEndsTest, WhatThePeerHadIsForgotten) {
    PeerState& peer = neighbours_.add(2);
    peer.code.sent.insert(Digest{});
    peer.calls.parked.emplace();
    const wire::Part part{.number = 1, .total_bytes = 300'000};
    ASSERT_TRUE(payload_parts_.add(peer, {{.kind = Kind::part}, std::as_bytes(std::span(&part, 1)), ByteBuffer(1)}));
    const auto place = value_or_throw(memory_.allocate(4096, 2));
    lose(peer, "it went");
    EXPECT_FALSE(peer.code.sent.contains(Digest{}));
    EXPECT_FALSE(peer.calls.parked);
    EXPECT_EQ(payload_parts_.bytes(), 0U);
    EXPECT_TRUE(memory_.has_work()) << place.key;
}

TEST_F(LinkEndsTest, WhatWaitedForRoomWasNotSentOn) {
    PeerState& caller = neighbours_.add(3);
    PeerState& member = neighbours_.add(2);
    const ByteBuffer large(60'000);
    while (member.outbox_of(Traffic::calls).is_empty())
        value_or_throw(neighbours_.sender.send(member, Traffic::calls, {.kind = Kind::ping, .node = 0}, {}, large));
    send_on(member, 3);
    lose(member, "its cable was pulled");
    const auto received = neighbours_.received_by(caller);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received[0].header.call, 5);
    EXPECT_EQ(as_text(Bytes(received[0].payload)),
              "node 2 was lost before the call was sent on to it (its cable was pulled)");
    EXPECT_TRUE(member.outbox_of(Traffic::calls).is_empty());
    const Hold hold(idle_.lead.mutex());
    EXPECT_FALSE(ends_.dropped().some().empty()) << "freed a little at a time";
}

TEST_F(LinkEndsTest, RepliesThatAMemberHasNotTakenAreKeptForIt) {
    PeerState& member = neighbours_.add(2);
    PeerState& client = neighbours_.add(kClientBit | 1);
    const Hold hold(idle_.lead.mutex());
    for (PeerState* const each : {&client, &member}) {
        value_or_throw(neighbours_.sender.send(*each, Traffic::prompt,
                                               {.kind = Kind::reply, .generation = 1, .node = each->id(), .call = 1},
                                               {}, as_bytes(std::string_view("in its mailbox"))));
        ends_.lose(*each, Error(ErrorCode::disconnected, "it went"));
        const std::size_t before = neighbours_.absent.kept_bytes();
        ends_.clean_up(*each);
        EXPECT_EQ(neighbours_.absent.kept_bytes() > before, each == &member) << "a client that comes back is another";
    }
}

TEST_F(LinkEndsTest, ThePeerIsToldAndCleanedUpByTheLeaderSoon) {
    std::vector<std::string> told;
    PeerState& peer = neighbours_.add(neighbours_.identity_of(2), neighbours_.open().first,
                                      [&told](const Error& why) { told.push_back(why.message()); });
    (void)housekeeping_.advance(0);
    const Hold hold(idle_.lead.mutex());
    ends_.lose(peer, Error(ErrorCode::disconnected, "it went"));
    EXPECT_TRUE(housekeeping_.advance(0));
    EXPECT_NE(peer.link(), nullptr) << "the leader's to do";
    const std::uint64_t before = ends_.count();
    ends_.clean_up(peer);
    EXPECT_EQ(ends_.count(), before + 1);
    EXPECT_EQ(told, std::vector<std::string>{"it went"});
    peer.hang_up(Error(ErrorCode::disconnected, "again"));
    EXPECT_EQ(told.size(), 1U) << "once";
}

// ---- a stream ends before its goodbye arrives, which says why

class Goodbye : public LinkEndsTest {
protected:
    // Its stream has ended, and nobody has said why.
    PeerState& add_ended() {
        auto link = std::make_shared<NoLink>();
        link->end_transport("the stream's end");
        return neighbours_.add(neighbours_.identity_of(2), std::move(link),
                               [this](const Error& why) { reasons_.push_back(why.message()); });
    }
    // The same; it was seen that long ago, or is seen later.
    PeerState& add_ended_since(TimePoint since) {
        PeerState& peer = add_ended();
        (void)peer.awaits_goodbye(since);
        return peer;
    }
    bool awaits(PeerState& peer) {
        const Hold hold(idle_.lead.mutex());
        return peer.awaits_goodbye(Clock::now());
    }
    void notice(PeerState& peer) {
        const Hold hold(idle_.lead.mutex());
        ends_.notice(peer);
    }
    std::string await(PeerState& peer, Deadline deadline) {
        Hold hold(idle_.lead.mutex());
        const Status waited = ends_.await_goodbye(peer, hold.lock(), deadline);
        return waited ? "said" : std::string(to_string(waited.error().code())) + ": " + waited.error().message();
    }
    std::vector<std::string> reasons_;  // why the control connection ends
};

TEST_F(Goodbye, IsWaitedForBeforeTheEndIsNoticed) {
    PeerState& peer = add_ended();
    notice(peer);
    EXPECT_FALSE(peer.lost()) << "the transport's end alone is nobody's word";
    EXPECT_TRUE(reasons_.empty());
    EXPECT_TRUE(awaits(peer));
}

TEST_F(Goodbye, ThatDoesNotComeInTimeIsNotWaitedFor) {
    PeerState& peer = add_ended_since(Clock::now() - kGoodbyeWait);
    EXPECT_FALSE(awaits(peer));
    (void)housekeeping_.advance(0);
    notice(peer);
    ASSERT_TRUE(peer.lost());
    EXPECT_EQ(peer.lost()->message(), "the stream's end");
    EXPECT_EQ(reasons_, std::vector<std::string>{"the stream's end"});
    EXPECT_TRUE(housekeeping_.advance(0)) << "it is to be cleaned up";
}

TEST_F(Goodbye, IsNotWaitedForWhereThisSideHasCutTheLink) {
    PeerState& peer = neighbours_.add(2);
    EXPECT_FALSE(awaits(peer)) << "it is well";
    peer.link()->break_with(Error(ErrorCode::invalid, "it broke a rule"));
    EXPECT_FALSE(awaits(peer));
    EXPECT_EQ(await(peer, std::nullopt), "said");
    notice(peer);
    ASSERT_TRUE(peer.lost());
    EXPECT_EQ(peer.lost()->code(), ErrorCode::disconnected);
    EXPECT_EQ(peer.lost()->message(), "it broke a rule");
}

TEST_F(Goodbye, EndsTheWaitOfWhoWantsToMeetAgain) {
    PeerState& peer = add_ended_since(Clock::now() + 1h);  // by its time it would not end
    std::atomic<bool> waits_there{false}, said{false};
    idle_.work_once = [&waits_there](Lead::Turn&) { waits_there = true; };
    std::thread waits([&] {
        EXPECT_EQ(await(peer, Clock::now() + 20s), "said");
        said = true;
    });
    EXPECT_TRUE(soon([&] { return waits_there.load(); }));
    {
        const Hold hold(idle_.lead.mutex());
        ends_.lose(peer, Error(ErrorCode::disconnected, "it left"));
    }
    waits.join();
    EXPECT_TRUE(said);
}

TEST_F(Goodbye, ThatDoesNotComeIsNotWaitedForLongerThanThat) {
    EXPECT_EQ(await(add_ended_since(Clock::now() - kGoodbyeWait + 5ms), std::nullopt), "said") << "there is none";
    EXPECT_EQ(await(add_ended_since(Clock::now() + 1h), Clock::now() + 5ms),
              "timed_out: the link to node 2 has ended, and the call's time was over; it was not sent");
}

TEST_F(Goodbye, IsNotWaitedForByANodeThatEnds) {
    PeerState& peer = add_ended();
    idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) { idle_.runner.end_waits(); });
    EXPECT_TRUE(await(peer, std::nullopt).starts_with("cancelled: "));
}

// Nothing runs on top of it, because it may be about to send what it reads in place.
TEST_F(Goodbye, LetsNothingRunOnTopOfWhoWaits) {
    PeerState& peer = add_ended();
    bool looked = false;
    idle_.work_once = [&](Lead::Turn& turn) REQUIRES(lock_of<EngineLock>) {
        looked = true;
        EXPECT_FALSE(turn.runs_functions());
        ends_.lose(peer, Error(ErrorCode::disconnected, "it left"));
    };
    EXPECT_EQ(await(peer, Clock::now() + 20s), "said");
    EXPECT_TRUE(looked);
}

}  // namespace
}  // namespace rove::test
