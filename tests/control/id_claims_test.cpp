// Which id a process gets, and whether it has the one that it says it has: what is asked at whose address, and what is believed.
#include "control/id_claims.hpp"

#include "control_parts.hpp"

namespace rove::test {
namespace {

using control::IdClaims;
using control::KeyPair;
using wire::control::Request;
using wire::control::Role;

class IdClaimsTest : public ControlParts {
protected:
    // Of a process with those keys that listens where the member with that id does.
    static Request request_of(const KeyPair& keys, NodeId at) {
        Request request{.address = address_of(at)};
        request.key = keys.key();
        return request;
    }
    // The same, with a certificate that this node has signed as `issuer`.
    Request certified(const KeyPair& keys, NodeId id, NodeId issuer) {
        Request request = request_of(keys, id);
        control::MemberEntry entry;
        entry.generation = 5;
        entry.address = request.address;
        entry.key = request.key;
        request.certificate = self_.certify(id, entry, issuer);
        return request;
    }
    asio::awaitable<Status> meet(NodeId id) {
        asked_.push_back(id);
        control::MemberEntry& entry = *members_.find(id);
        if (answers_.contains(id)) co_return Status();
        membership_.is_gone(id, entry.key, "nobody answers there");
        co_return fail(ErrorCode::disconnected, "nobody answers");
    }
    std::string refusal(const Request& request) {
        const auto claimed = run(ids_.of_member(request));
        return claimed ? "it is believed" : claimed.error().message();
    }

    std::vector<NodeId> asked_;
    std::set<NodeId> answers_, opening_;
    IdClaims ids_{{.self = self_,
                   .members = members_,
                   .membership = membership_,
                   .routes = neighbours_.routes,
                   .peers = peers_,
                   .meet_member = [this](NodeId id, bool /*probe*/) { return meet(id); },
                   .is_opening = [this](NodeId id) { return opening_.contains(id); }}};
    const KeyPair keys_;
};

TEST_F(IdClaimsTest, NobodyGetsTheIdOfWhoLives) {
    begin_as(0);
    members_.set(member(1), State::lost);
    answers_ = {1};
    const auto refused = run(ids_.give(request_of(keys_, 1)));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::refused);
    EXPECT_EQ(asked_, std::vector<NodeId>{1});
    answers_.clear();
    EXPECT_EQ(value_or_throw(run(ids_.give(request_of(keys_, 1)))), 1U) << "it has its place now";
    EXPECT_EQ(state_of(1), State::joining);
    const auto busy = run(ids_.give(request_of(keys_, 1)));
    ASSERT_FALSE(busy);
    EXPECT_EQ(busy.error().code(), ErrorCode::overloaded);
    const auto here = run(ids_.give(request_of(keys_, 0)));
    ASSERT_FALSE(here);
    EXPECT_EQ(here.error().code(), ErrorCode::invalid) << "this node listens there";
}

TEST_F(IdClaimsTest, TheLowestMemberGivesIds) {
    begin_as(3);
    EXPECT_EQ(ids_.giver(), nullptr) << "this node does";
    members_.set(member(5), State::living);
    EXPECT_EQ(ids_.giver(), nullptr);
    members_.set(member(1), State::lost);
    EXPECT_EQ(ids_.giver(), members_.find(1));
}

TEST_F(IdClaimsTest, ACertificateCountsInItsClusterFromWhoGivesIds) {
    begin_as(0);
    Request request = certified(keys_, 2, 0);
    const auto claimed = value_or_throw(run(ids_.of_member(request)));
    EXPECT_EQ(claimed.id, 2U);
    EXPECT_FALSE(claimed.is_linked);
    EXPECT_TRUE(ids_.check_is_free(2, Role::member, request));
    EXPECT_TRUE(contains(refusal(certified(keys_, 0, 0)), "which this node is"));
    EXPECT_TRUE(contains(refusal(certified(keys_, 1 + control::kIdsAheadMax, 0)), "try again when more are"));
    EXPECT_TRUE(contains(refusal(certified(keys_, 2, 1)), "no member that gives ids says so"));
    request.address = address_of(3);
    EXPECT_TRUE(contains(refusal(request), "no member that gives ids says so")) << "it was given for another address";
    request = certified(keys_, 2, 0);
    self_.set_cluster(control::random_id<wire::control::Cluster>());
    EXPECT_TRUE(contains(refusal(request), "no member that gives ids says so"));
    EXPECT_TRUE(asked_.empty());
}

// The issuer gives ids only once those with lower ids are gone, which this node has not noticed yet.
TEST_F(IdClaimsTest, LowerMembersAreAskedWhetherTheyAreThere) {
    for (const bool is_there : {true, false}) {
        asked_.clear();
        answers_ = is_there ? std::set<NodeId>{1} : std::set<NodeId>{};
        members_.set(member(1), State::lost);
        members_.set({.id = 3, .generation = 1, .address = address_of(3), .key = self_.keys().key()}, State::living);
        neighbours_.routes.set_identity(5, 6);
        EXPECT_EQ(refusal(certified(keys_, 7, 3)) == "it is believed", !is_there);
        EXPECT_EQ(asked_, std::vector<NodeId>{1});
    }
}

TEST_F(IdClaimsTest, WhoHasTheIdIsAskedBeforeAnotherGetsIt) {
    begin_as(0);
    members_.set(member(2), State::living);
    answers_ = {2};
    EXPECT_TRUE(contains(refusal(certified(keys_, 2, 0)), "another process that is lives"));
    answers_.clear();
    EXPECT_EQ(refusal(certified(keys_, 2, 0)), "it is believed");
    EXPECT_EQ(asked_, (std::vector<NodeId>{2, 2}));
    members_.find(2)->generation = 6;
    EXPECT_TRUE(contains(refusal(certified(keys_, 2, 0)), "is another process by now"));
}

TEST_F(IdClaimsTest, OfTwoMeetingsAtOnceTheLowerIdsGoesOn) {
    begin_as(1);
    opening_ = {0, 2};
    EXPECT_TRUE(value_or_throw(run(ids_.of_member(certified(keys_, 2, 1)))).is_linked);
    EXPECT_FALSE(value_or_throw(run(ids_.of_member(certified(keys_, 0, 1)))).is_linked);
}

TEST_F(IdClaimsTest, WhoHasALinkIsToldSoUnlessItSaysThatTheLinkIsNoGood) {
    begin_as(1);
    Request request = certified(keys_, 0, 1);
    members_.set({.id = 0, .generation = 5, .address = request.address, .key = request.key}, State::lost);
    const Linked linked = link_with(0);
    membership_.is_here(0, linked.adopted, linked.channel);
    EXPECT_TRUE(value_or_throw(run(ids_.of_member(request))).is_linked);
    request.replace = true;
    EXPECT_FALSE(value_or_throw(run(ids_.of_member(request))).is_linked);
}

}  // namespace
}  // namespace rove::test
