// What a node does when members are met, lost, gone, or named by others.
#include "control_parts.hpp"

namespace rove::test {
namespace {

using MembershipTest = ControlParts;

TEST_F(MembershipTest, TheFirstNodeOfAClusterCertifiesItself) {
    EXPECT_FALSE(self_.is_member());
    begin_as(0);
    EXPECT_TRUE(self_.is_member());
    EXPECT_EQ(state_of(0), State::living);
    EXPECT_EQ(self_.certificate().id, 0U);
    EXPECT_TRUE(self_.is_certified(self_.as_member()));
    control::OwnIdentity other;
    other.listens_at(address_of(1));
    other.begin_cluster(1);
    EXPECT_FALSE(self_.is_certified(other.as_member())) << "of another cluster";
}

TEST_F(MembershipTest, WhoHasJoinedKnowsTheClusterAndItsMembers) {
    control::OwnIdentity giver;
    giver.listens_at(address_of(0));
    giver.begin_cluster(0);
    self_.listens_at(address_of(4));
    const auto me = giver.certify({.id = 4, .generation = 9, .address = address_of(4), .key = self_.keys().key()});
    const wire::control::Settled settled{.certificate = {me.id, me.generation, me.signature},
                                         .cluster = giver.cluster(),
                                         .members = {giver.as_member(), giver.certify(member(1)), member(2)}};
    const wire::control::Welcome welcome{.you = 4, .count = 5, .key = giver.keys().key()};
    ASSERT_TRUE(membership_.joined(welcome, settled));
    EXPECT_EQ(members_.lowest(), 0U);
    EXPECT_EQ(members_.find(1)->trust, Trust::told);
    EXPECT_EQ(state_of(2), State::unused) << "it has no certificate";
    EXPECT_TRUE(self_.is_certified(self_.as_member()));
    EXPECT_TRUE(self_.is_certified(giver.certify(member(7)))) << "it can check what others certify from here on";
    const wire::control::Welcome by_another{.you = 4, .count = 5, .key = member(3).key};
    EXPECT_FALSE(membership_.joined(by_another, settled));
    const wire::control::Welcome as_another{.you = 5, .count = 6, .key = giver.keys().key()};
    EXPECT_FALSE(membership_.joined(as_another, settled));
    wire::control::Settled for_another_key = settled;
    for_another_key.certificate.signature = giver.certify(member(4)).signature;
    EXPECT_FALSE(membership_.joined(welcome, for_another_key));
}

// A giver could name ids beyond those that a cluster has, and a list would not hold them all.
TEST_F(MembershipTest, WhoJoinsBelievesNoIdBeyondTheMost) {
    constexpr auto kMost = static_cast<NodeId>(wire::control::kMembersMax);
    control::OwnIdentity giver;
    giver.listens_at(address_of(0));
    giver.begin_cluster(0);
    self_.listens_at(address_of(4));
    const auto settled_as = [&](NodeId id) {
        const auto me = giver.certify({.id = id, .generation = 9, .address = address_of(4), .key = self_.keys().key()});
        return wire::control::Settled{.certificate = {me.id, me.generation, me.signature},
                                      .cluster = giver.cluster(),
                                      .members = {giver.as_member(), giver.certify(member(kMost))}};
    };
    EXPECT_FALSE(membership_.joined({.you = kMost, .count = 5, .key = giver.keys().key()}, settled_as(kMost)));
    ASSERT_TRUE(membership_.joined({.you = 4, .count = 5, .key = giver.keys().key()}, settled_as(4)));
    EXPECT_EQ(members_.list(4).size(), 1U) << "the giver";
    EXPECT_LE(members_.count(), kMost);
}

TEST_F(MembershipTest, TheLowestTellsAllOfWhomItMeets) {
    begin_as(0);
    const Linked first = meet(1);
    EXPECT_EQ(told(first), std::vector<NodeId>{0}) << "it may not have heard of the others";
    ASSERT_TRUE(membership_.heard_of({certified(2)}));
    const Linked second = meet(2);
    EXPECT_EQ(told(first), std::vector<NodeId>{2}) << "it was not met before";
    EXPECT_EQ(told(second), (std::vector<NodeId>{0, 1}));
    const Linked again = meet(2);
    EXPECT_TRUE(told(first).empty()) << "it is no news";
    EXPECT_EQ(told(again), (std::vector<NodeId>{0, 1}));
    const Linked joined = meet(3, true);
    EXPECT_EQ(told(first), std::vector<NodeId>{3});
    EXPECT_TRUE(told(joined).empty()) << "it has the list";
}

// So two groups that have forgotten each other need one meeting to be one again.
TEST_F(MembershipTest, AnotherTellsTheLowestOfWhomItHadNotHeard) {
    begin_as(3);
    const Linked other = meet(5);
    (void)told(other);
    const Linked lowest = meet(1);
    EXPECT_EQ(told(lowest), (std::vector<NodeId>{3, 5})) << "which may not have heard of those that came here";
    EXPECT_TRUE(told(other).empty()) << "the lowest tells it";
    const Linked unheard_of = meet(2);
    EXPECT_EQ(told(lowest), std::vector<NodeId>{2});
    EXPECT_TRUE(told(unheard_of).empty());
    ASSERT_TRUE(membership_.heard_of({certified(4)}));
    const Linked heard_of = meet(4);
    EXPECT_TRUE(told(lowest).empty()) << "another member has named it";
}

// Another node may have become the lowest in the meantime, and never have heard of it.
TEST_F(MembershipTest, WhoComesBackAfterItWasGivenUpIsNewToTheLowest) {
    begin_as(3);
    ASSERT_TRUE(membership_.heard_of({certified(4)}));
    membership_.give_up(4, member(4).key, "it did not answer for long");
    const Linked lowest = meet(1);
    EXPECT_EQ(told(lowest), std::vector<NodeId>{3});
    (void)meet(4);
    EXPECT_EQ(told(lowest), std::vector<NodeId>{4});
}

TEST_F(MembershipTest, WhoLooksForTheFormerProcessIsMetAlsoWhereItWasGivenUp) {
    begin_as(0);
    membership_.sought_by(member(1));
    EXPECT_EQ(state_of(1), State::unused) << "it has no certificate";
    membership_.sought_by(certified(1));
    membership_.sought_by(certified(1));
    EXPECT_EQ(met_again_, std::vector<NodeId>{1}) << "that goes on already";
    membership_.give_up(1, member(1).key, "it did not answer for long");
    membership_.sought_by(certified(1));
    EXPECT_EQ(state_of(1), State::lost);
    EXPECT_EQ(met_again_, (std::vector<NodeId>{1, 1}));
    membership_.give_up(1, member(1).key, "it did not answer for long");
    wire::control::Member other = member(1);
    other.key = member(2).key;
    membership_.sought_by(self_.certify(other));
    EXPECT_EQ(state_of(1), State::gone) << "another process with as old a certificate";
}

TEST_F(MembershipTest, AMemberWhoseLinkEndsIsMetAgainUnlessItLeft) {
    begin_as(0);
    const Linked first = meet(1), second = meet(2);
    membership_.went(1, first.adopted.meeting + 7, false);
    EXPECT_EQ(state_of(1), State::living) << "that was another meeting";
    membership_.went(1, first.adopted.meeting, false);
    EXPECT_EQ(state_of(1), State::lost);
    EXPECT_EQ(met_again_, std::vector<NodeId>{1});
    membership_.went(2, second.adopted.meeting, true);
    EXPECT_EQ(state_of(2), State::gone);
    EXPECT_EQ(met_again_, std::vector<NodeId>{1});
    EXPECT_FALSE(peers_.linked(*second.adopted.peer)) << "whoever is gone has no link";
}

TEST_F(MembershipTest, OnlyThatProcessIsGone) {
    begin_as(0);
    members_.set(member(1), State::lost);
    membership_.give_up(1, member(2).key, "it is another process");
    EXPECT_EQ(state_of(1), State::lost);
    membership_.give_up(0, self_.keys().key(), "a node does not believe that of itself");
    EXPECT_EQ(state_of(0), State::living);
    membership_.give_up(1, member(1).key, "nobody listens there");
    EXPECT_EQ(state_of(1), State::gone);
}

TEST_F(MembershipTest, WhoHasACertificateIsMet) {
    begin_as(3);
    EXPECT_FALSE(membership_.heard_of({certified(6), member(7), certified(8)}));
    EXPECT_EQ(state_of(6), State::lost);
    EXPECT_EQ(state_of(7), State::unused);
    EXPECT_EQ(met_again_, std::vector<NodeId>{6});
    EXPECT_TRUE(membership_.heard_of({certified(3), certified(6)})) << "this node, and no news";
    wire::control::Member elsewhere = certified(9);
    elsewhere.address = address_of(5);
    EXPECT_FALSE(membership_.heard_of({elsewhere}));
    EXPECT_EQ(met_again_, std::vector<NodeId>{6});
}

}  // namespace
}  // namespace rove::test
