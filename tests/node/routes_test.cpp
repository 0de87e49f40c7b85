// Which peer frames for a node are sent to, by itself.
#include "peer/routes.hpp"

#include <gtest/gtest.h>

#include "met_peer.hpp"

namespace rove::test {
namespace {

class RoutesTest : public testing::Test {
protected:
    RoutesTest() { ids_.set_identity(1, 4); }
    void enter(PeerState& peer, NodeId id, bool member) {
        const PeerIdentity met{.id = id, .member = member};
        (void)peer.end_meeting(dropped_);
        meet(peer, met, routes_.name_for(met, peer.back()));
        routes_.enter(peer);
    }

    std::size_t outbox_bytes_ = 0;
    DroppedBytes dropped_;
    PeerState one_{outbox_bytes_}, other_{outbox_bytes_};
    NodeIds ids_;
    BetweenEngines between_{2};
    const OtherEngines others_{between_, 0}, another_{between_, 1};
    Routes routes_{ids_, others_};
};

TEST_F(RoutesTest, AMemberIsReachedByItsIdAndForItsClients) {
    enter(one_, 2, true);
    EXPECT_EQ(routes_.to(2), &one_);
    EXPECT_EQ(routes_.to(client_id(2, 7)), &one_) << "it is the home of that client";
    EXPECT_EQ(routes_.member(2), &one_);
    EXPECT_EQ(routes_.to(3), nullptr);
    EXPECT_EQ(routes_.to(1), nullptr) << "this node";
    routes_.leave(one_);
    EXPECT_EQ(routes_.to(2), nullptr);
    EXPECT_EQ(routes_.to(client_id(2, 7)), nullptr);
}

TEST_F(RoutesTest, ANodeOfAnotherClusterIsFoundAtItsAddress) {
    const auto enter_at = [this](PeerState& peer, const std::string& address) {
        const PeerIdentity met{.id = 2, .my_id = client_id(2, 7), .member = false, .address = address};
        meet(peer, met, routes_.name_for(met, peer.back()));
        routes_.enter(peer);
    };
    enter_at(one_, "unix:/a");
    enter_at(other_, "unix:/b");
    EXPECT_EQ(routes_.foreign_at("unix:/a"), &one_);
    EXPECT_EQ(routes_.foreign_at("unix:/b"), &other_);
    EXPECT_EQ(routes_.foreign_at("unix:/c"), nullptr);
    routes_.leave(one_);
    EXPECT_EQ(routes_.foreign_at("unix:/a"), nullptr);
    (void)one_.end_meeting(dropped_);
    enter_at(one_, "unix:/b");
    EXPECT_EQ(routes_.foreign_at("unix:/b"), &one_) << "it was met last";
    routes_.leave(one_);
    EXPECT_EQ(routes_.foreign_at("unix:/b"), &other_) << "it is still there";
    routes_.leave(other_);
    EXPECT_EQ(routes_.foreign_at("unix:/b"), nullptr);
}

TEST_F(RoutesTest, AClientOfThisNodeIsReachedByTheIdThatItWasGiven) {
    enter(one_, client_id(1, 7), false);
    enter(other_, client_id(1, 8), false);
    EXPECT_EQ(routes_.to(client_id(1, 7)), &one_);
    EXPECT_EQ(routes_.to(client_id(1, 8)), &other_);
    EXPECT_EQ(routes_.to(client_id(1, 8)), &other_) << "as it was found before";
    EXPECT_TRUE(routes_.has_client(client_id(1, 7)));
    routes_.leave(other_);
    EXPECT_EQ(routes_.to(client_id(1, 8)), nullptr) << "it was found last, and has left";
    EXPECT_EQ(routes_.to(client_id(1, 7)), &one_);
}

// kNoNode is in frames of hostile peers.
TEST_F(RoutesTest, WhoWasFoundLastAndHasLeftIsNotFoundAsNoNode) {
    enter(one_, client_id(1, 7), false);
    EXPECT_EQ(routes_.to(kNoNode), nullptr);
    EXPECT_EQ(routes_.to(client_id(1, 7)), &one_);
    EXPECT_EQ(routes_.to(kNoNode), nullptr);
    EXPECT_EQ(routes_.to(client_id(1, 7)), &one_);
    routes_.leave(one_);
    EXPECT_EQ(routes_.to(kNoNode), nullptr);
}

// Whoever is asked for before it comes is found afterwards.
TEST_F(RoutesTest, AClientIsFoundOnceItHasCome) {
    EXPECT_EQ(routes_.to(client_id(1, 7)), nullptr);
    enter(one_, client_id(1, 7), false);
    EXPECT_EQ(routes_.to(client_id(1, 7)), &one_);
    routes_.leave(one_);
    enter(other_, client_id(1, 7), false);
    EXPECT_EQ(routes_.to(client_id(1, 7)), &other_);
}

TEST_F(RoutesTest, ANodeThatIsNoMemberHasANameOfThisNodesOwn) {
    enter(one_, 2, true);
    enter(other_, 2, false);
    EXPECT_EQ(routes_.to(2), &one_) << "both are node 2, each among others";
    EXPECT_NE(other_.back(), 2U);
    EXPECT_FALSE(is_client(other_.back()));
    EXPECT_EQ(routes_.to(other_.back()), &other_);
    const NodeId name = other_.back();
    routes_.leave(other_);
    EXPECT_EQ(routes_.to(name), nullptr);
    enter(other_, 2, false);
    EXPECT_EQ(other_.back(), name) << "a peer keeps its name";
    EXPECT_EQ(routes_.to(name), &other_);
}

TEST_F(RoutesTest, AMemberThatComesBackAsAnotherNodeIsGivenAName) {
    enter(one_, 2, true);
    routes_.leave(one_);
    enter(one_, 2, false);
    EXPECT_NE(one_.back(), 2U);
    EXPECT_EQ(routes_.to(one_.back()), &one_);
    EXPECT_EQ(routes_.to(2), nullptr);
}

TEST_F(RoutesTest, OneThatLeavesLateDoesNotTakeItsSuccessorAlong) {
    enter(one_, 2, true);
    enter(other_, 2, true);
    routes_.leave(one_);
    EXPECT_EQ(routes_.to(2), &other_);
    EXPECT_EQ(another_.with_link(2), 0U) << "another engine finds it, too";
    routes_.leave(other_);
    EXPECT_EQ(another_.with_link(2), std::nullopt);
}

TEST_F(RoutesTest, TheNumberOfNodesOnlyGrows) {
    EXPECT_EQ(routes_.node_count(), 4U);
    ids_.set_node_count(3);
    EXPECT_EQ(routes_.node_count(), 4U);
    ids_.set_node_count(5);
    EXPECT_EQ(routes_.node_count(), 5U);
    EXPECT_EQ(routes_.id(), 1U);
}

}  // namespace
}  // namespace rove::test
