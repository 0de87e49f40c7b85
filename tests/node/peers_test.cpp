// How a link becomes a peer's, without a control thread.
#include "engine/peers.hpp"

#include <gtest/gtest.h>

#include "answering_parts.hpp"
#include "package/digest.hpp"

namespace rove::test {
namespace {

using wire::Kind;

class PeersTest : public AnsweringParts {
protected:
    struct Met {
        std::shared_ptr<PeerState> peer;
        std::uint64_t meeting;
        bool taken;
        std::unique_ptr<fabric::Link> far;  // the peer's end
    };
    Met meet(Meeting meeting, std::shared_ptr<PeerState> old = {}) {
        auto [link, far] = neighbours_.open();
        const Peers::Adopted adopted =
            value_or_throw(peers_.adopt(std::move(meeting), std::move(link), std::move(old)));
        return {adopted.peer, adopted.meeting, adopted.taken, std::move(far)};
    }
    static Meeting member(NodeId id, unsigned char process = 1) {
        AbsentMembers::Process key{};
        key.bytes[0] = process;
        return {.peer = {.id = id,
                         .my_id = 0,
                         .member = true,
                         .process = key,
                         .address = "127.0.0.1:" + std::to_string(7000 + id),
                         .triple = "x86_64-linux-gnu",
                         .node_count = 4},
                .resident = {}};
    }
    static Meeting client(NodeId number) {
        return {.peer = {.id = kClientBit | number, .my_id = 0, .triple = "x86_64-linux-gnu", .node_count = 4},
                .resident = {}};
    }
    // What the leader does when a link has ended.
    void clean_up(PeerState& peer) {
        const Hold hold(idle_.lead.mutex());
        ends_.clean_up(peer);
    }
    std::string words_of_linked(NodeId id) {
        const auto found = peers_.linked(id);
        return found ? "it is linked" : std::string(to_string(found.error().code()));
    }

    const Digest kDigest = digest_of({"a package"});
};

TEST_F(PeersTest, WhoHasBeenMetIsFoundByEachOfItsNames) {
    const Met two = meet(member(2)), guest = meet(client(5));
    Meeting foreign = client(0);  // this node is a client of that one
    foreign.peer.id = 0;
    foreign.peer.my_id = kClientBit | 3;
    foreign.peer.address = "127.0.0.1:9";
    const Met server = meet(foreign);
    EXPECT_TRUE(two.taken && guest.taken && server.taken);
    EXPECT_EQ(peers_.count(), 3U);
    EXPECT_EQ(*peers_.linked(2), two.peer);
    EXPECT_EQ(*peers_.linked(kClientBit | 5), guest.peer);
    EXPECT_EQ(*peers_.linked(server.peer->back()), server.peer)
        << "by a name of this node's own, because 0 is its own id";
    EXPECT_NE(server.peer->back(), 0U);
    EXPECT_FALSE(peers_.linked(3));
    EXPECT_TRUE(peers_.reaches(2, "127.0.0.1:7002"));
    EXPECT_FALSE(peers_.reaches(2, "127.0.0.1:7003"));
    EXPECT_EQ(peers_.linked_at("127.0.0.1:9"), server.peer);
    EXPECT_EQ(peers_.linked_at("127.0.0.1:7002"), nullptr) << "where members are is the control plane's to say";
    EXPECT_TRUE(peers_.knows_owner(2));
    EXPECT_FALSE(peers_.knows_owner(3));
    const NodeDescription described = peers_.describe(*two.peer);
    EXPECT_EQ(described.address, "127.0.0.1:7002");
    EXPECT_EQ(described.node_count, 4U);
}

TEST_F(PeersTest, WhoIsNotThereIsNamed) {
    EXPECT_EQ(peers_.linked(kClientBit | 5).error().message(),
              "node 0 has no link to client 80000005: only the node that a client met can call it");
    EXPECT_EQ(peers_.linked(9).error().message(), "node 0 knows no node 9: there are 4");
    EXPECT_EQ(words_of_linked(3), "disconnected");
}

TEST_F(PeersTest, AMemberThatComesBackIsTheSamePeerAndHasForgotten) {
    Meeting first_time = member(2);
    first_time.resident = {kDigest};
    const Met first = meet(first_time);
    EXPECT_TRUE(first.peer->code.sent.contains(kDigest));
    peers_.lose(first.peer, first.meeting, Error(ErrorCode::disconnected, "it went"));
    EXPECT_FALSE(peers_.linked(*first.peer));
    clean_up(*first.peer);
    EXPECT_EQ(words_of_linked(2), "disconnected");
    const Met again = meet(member(2, 2));
    EXPECT_EQ(again.peer, first.peer);
    EXPECT_GT(again.meeting, first.meeting);
    EXPECT_EQ(peers_.count(), 1U);
    EXPECT_TRUE(peers_.linked(*again.peer));
    EXPECT_FALSE(again.peer->code.sent.contains(kDigest)) << "the other process may not have it";
    peers_.lose(again.peer, first.meeting, Error(ErrorCode::disconnected, "the end of the meeting before"));
    EXPECT_TRUE(peers_.linked(*again.peer));
}

TEST_F(PeersTest, ALinkThatIsGoodStaysUnlessTheOtherEndSaysThatItIsNot) {
    const Met first = meet(member(2));
    const CallId own = call(*first.peer);
    const Met second = meet(member(2), first.peer);
    EXPECT_FALSE(second.taken);
    EXPECT_EQ(second.meeting, first.meeting);
    EXPECT_FALSE(own_calls_.test(own));
    Meeting instead = member(2);
    instead.replace = true;
    const Met third = meet(instead, first.peer);
    EXPECT_TRUE(third.taken);
    EXPECT_TRUE(contains(end_of(own), "it was met again"));
    EXPECT_TRUE(peers_.linked(*first.peer));
}

TEST_F(PeersTest, AnotherProcessThatHasAMembersIdTakesItsPlace) {
    const Met former = meet(member(2));
    const CallId own = call(*former.peer);
    const Met next =
        meet(member(2, 2), std::make_shared<PeerState>(neighbours_.sender.waiting_bytes(), former.peer->engine));
    EXPECT_NE(next.peer, former.peer);
    EXPECT_TRUE(contains(end_of(own), "another process took its place"));
    EXPECT_EQ(*peers_.linked(2), next.peer);
}

TEST_F(PeersTest, WhatWasKeptForAMemberComesFirst) {
    peers_.member_expected(2, member(2).peer.process, "its cable was pulled");
    EXPECT_TRUE(contains(peers_.linked(2).error().message(), "its cable was pulled"));
    {
        const Hold hold(idle_.lead.mutex());
        const std::string_view text = "kept";
        EXPECT_EQ(
            neighbours_.absent.keep(
                2, {.body_bytes = static_cast<std::uint32_t>(text.size()), .kind = Kind::reply, .node = 2, .call = 5},
                {}, as_bytes(text), Clock::now()),
            AbsentMembers::Kept::yes);
        EXPECT_GT(neighbours_.absent.kept_bytes(), 0U);
    }
    const Met met = meet(member(2));
    {
        const Hold hold(idle_.lead.mutex());
        EXPECT_EQ(neighbours_.absent.kept_bytes(), 0U);
    }
    const auto received = Neighbours::received_at(*met.far);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(as_text(Bytes(received[0].payload)), "kept");
}

TEST_F(PeersTest, WhoHasGoneIsTakenAwayWhereNobodyHasAHandle) {
    Met guest = meet(client(5)), two = meet(member(2));
    for (const Met* each : {&guest, &two}) {
        peers_.lose(each->peer, each->meeting, Error(ErrorCode::disconnected, "it went"));
        clean_up(*each->peer);
    }
    const Hold hold(idle_.lead.mutex());
    const auto place_of = [&](const std::shared_ptr<PeerState>& peer) REQUIRES(lock_of<EngineLock>) {
        return static_cast<std::size_t>(std::find(peers_.all().begin(), peers_.all().end(), peer) -
                                        peers_.all().begin());
    };
    EXPECT_TRUE(peers_.remove_unneeded(place_of(guest.peer), guest.peer)) << "a client that comes back is another one";
    std::shared_ptr<PeerState> listed = two.peer;
    EXPECT_FALSE(peers_.remove_unneeded(place_of(listed), listed)) << "somebody has a handle";
    two.peer.reset();
    EXPECT_TRUE(peers_.remove_unneeded(place_of(listed), listed));
    EXPECT_EQ(peers_.all().size(), 0U);
}

TEST_F(PeersTest, LinksHaveAVersionThatEachMeetingAndEachEndChanges) {
    const auto version = [this] {
        const Hold hold(idle_.lead.mutex());
        return peers_.links_version();
    };
    const std::uint64_t before = version();
    const Met met = meet(member(2));
    const std::uint64_t with = version();
    EXPECT_GT(with, before);
    peers_.lose(met.peer, met.meeting, Error(ErrorCode::disconnected, "it went"));
    clean_up(*met.peer);
    EXPECT_GT(version(), with);
}

}  // namespace
}  // namespace rove::test
