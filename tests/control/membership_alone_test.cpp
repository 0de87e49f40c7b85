// What a node does when members are met, lost, gone, or named by others.
#include "control_parts.hpp"

namespace rove::test {
namespace {

using MembershipTest = ControlParts;

TEST_F(MembershipTest, TheFirstNodeOfAClusterSignsItsOwnCertificate) {
    EXPECT_FALSE(self_.is_member());
    begin_as(0);
    EXPECT_TRUE(self_.is_member());
    EXPECT_EQ(state_of(0), State::living);
    const wire::control::Certificate& own = self_.certificate();
    EXPECT_EQ(own.id, 0U);
    EXPECT_EQ(own.issuer, 0U);
    EXPECT_EQ(own.cluster, self_.cluster());
    EXPECT_NE(self_.cluster(), wire::control::Cluster{});
    EXPECT_TRUE(control::signed_by(self_.keys().key(),
                                   wire::control::statement(own, self_.address(), self_.keys().key()), own.signature));
    EXPECT_TRUE(membership_.gives_ids(0));
}

TEST_F(MembershipTest, TheNodeThatGivesIdsTellsAllOfWhomItMeets) {
    begin_as(0);
    members_.set(member(1), State::lost);
    members_.set(member(2), State::lost, Trust::told);
    const Linked first = link_with(1);
    membership_.is_here(1, first.adopted, first.channel);
    EXPECT_EQ(told(first), std::vector<NodeId>{0}) << "it may not have heard of the others";
    const Linked second = link_with(2);
    membership_.is_here(2, second.adopted, second.channel);
    EXPECT_EQ(told(first), std::vector<NodeId>{2}) << "it was not proven before";
    EXPECT_EQ(told(second), (std::vector<NodeId>{0, 1}));
}

TEST_F(MembershipTest, AnotherNodeTellsThoseOnlyThatItLetIn) {
    members_.set(member(0), State::lost);
    begin_as(3);
    for (const NodeId id : {1U, 2U}) members_.set(member(id), State::lost);
    members_.find(1)->let_in_here = true;
    const Linked first = link_with(1), second = link_with(2);
    membership_.is_here(1, first.adopted, first.channel);
    membership_.is_here(2, second.adopted, second.channel);
    membership_.tell({member(5)}, 5);
    EXPECT_EQ(told(first), std::vector<NodeId>{5});
    EXPECT_TRUE(told(second).empty());
}

TEST_F(MembershipTest, AMemberWhoseLinkEndsIsMetAgainUnlessItLeft) {
    begin_as(0);
    for (const NodeId id : {1U, 2U}) members_.set(member(id), State::lost);
    const Linked first = link_with(1), second = link_with(2);
    membership_.is_here(1, first.adopted, first.channel);
    membership_.is_here(2, second.adopted, second.channel);
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
    membership_.is_gone(1, member(2).key, "it is another process");
    EXPECT_EQ(state_of(1), State::lost);
    membership_.is_gone(0, self_.keys().key(), "a node does not believe that of itself");
    EXPECT_EQ(state_of(0), State::living);
    membership_.is_gone(1, member(1).key, "nobody listens there");
    EXPECT_EQ(state_of(1), State::gone);
}

TEST_F(MembershipTest, OthersAreBelievedWhereTheyGiveIds) {
    begin_as(3);
    for (const NodeId id : {0U, 1U}) members_.set(member(id), State::lost);
    membership_.heard_of({member(7)}, 1);
    EXPECT_EQ(state_of(7), State::unused);
    membership_.heard_of({member(0), member(3), member(7)}, 0);
    EXPECT_EQ(state_of(7), State::lost);
    EXPECT_EQ(met_again_, std::vector<NodeId>{7}) << "neither who says so nor this node";
    membership_.heard_of({member(7)}, 0);
    EXPECT_EQ(met_again_, std::vector<NodeId>{7}) << "it is no news";
}

}  // namespace
}  // namespace rove::test
