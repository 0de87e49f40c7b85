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
    // The same, with a certificate of this node's cluster.
    Request certified(const KeyPair& keys, NodeId id) {
        Request request = request_of(keys, id);
        const auto member =
            self_.certify({.id = id, .generation = 5, .address = request.address, .key = request.key, .signature = {}});
        request.certificate = {.id = id, .generation = 5, .signature = member.signature};
        return request;
    }
    asio::awaitable<Status> meet(NodeId id) {
        asked_.push_back(id);
        control::MemberEntry& entry = *members_.find(id);
        if (answers_.contains(id)) co_return Status();
        membership_.give_up(id, entry.key, "nobody answers there");
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
                   .ids = neighbours_.ids,
                   .engines = engines_,
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

TEST_F(IdClaimsTest, AClusterHasAsManyMembersAsOneListHolds) {
    begin_as(0);
    constexpr auto kMost = static_cast<NodeId>(wire::control::kMembersMax);
    EXPECT_EQ(refusal(certified(keys_, kMost)).find("it says that it is node 1024"), 0U);
    for (NodeId id = 1; id < kMost - 1; ++id) members_.set(member(id), State::lost);
    EXPECT_EQ(value_or_throw(run(ids_.give(request_of(keys_, kMost - 1)))), kMost - 1);
    members_.set(member(kMost - 1), State::lost);
    const auto full = run(ids_.give(request_of(keys_, kMost)));
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code(), ErrorCode::overloaded);
    EXPECT_NE(full.error().message().find("1024 nodes are members"), std::string::npos) << full.error().message();
    EXPECT_NE(full.error().message().find("when one has left"), std::string::npos) << full.error().message();
    EXPECT_EQ(members_.list(kNoNode).size(), kMost) << "none is left out of a list";
    EXPECT_NE(refusal(certified(keys_, kMost)).find("it says that it is node 1024"), std::string::npos);
    EXPECT_FALSE(members_.is_news(member(kMost)));
}

// A member that is stopped for long is given up, and comes back with its id.
TEST_F(IdClaimsTest, AnIdThatWasTakenIsTheLastToBeGivenAgain) {
    begin_as(0);
    const Request alive = certified(keys_, 1);
    ASSERT_TRUE(membership_.heard_of({member_of(alive)}));
    membership_.give_up(1, keys_.key(), "it did not answer for long");
    const KeyPair other;
    EXPECT_EQ(value_or_throw(run(ids_.give(request_of(other, 9)))), 2U);
    EXPECT_EQ(refusal(alive), "it is believed");
    ASSERT_EQ(value_or_throw(run(ids_.give(request_of(other, 1)))), 1U) << "it listens where that one did";
    members_.take_back(1);
    EXPECT_EQ(refusal(alive), "it is believed") << "nobody has joined in its place";
}

TEST_F(IdClaimsTest, TheLowestMemberGivesIds) {
    begin_as(3);
    EXPECT_EQ(ids_.giver(), nullptr) << "this node does";
    members_.set(member(5), State::living);
    EXPECT_EQ(ids_.giver(), nullptr);
    members_.set(member(1), State::lost);
    EXPECT_EQ(ids_.giver(), members_.find(1));
}

TEST_F(IdClaimsTest, ACertificateCountsInItsCluster) {
    begin_as(0);
    Request request = certified(keys_, 2);
    const auto claimed = value_or_throw(run(ids_.of_member(request)));
    EXPECT_EQ(claimed.id, 2U);
    EXPECT_FALSE(claimed.is_linked);
    EXPECT_TRUE(ids_.check_is_free(2, Role::member, request));
    EXPECT_TRUE(contains(refusal(certified(keys_, 0)), "which this node is"));
    EXPECT_TRUE(contains(refusal(certified(keys_, 1 + control::kIdsAheadMax)), "try again when more are"));
    request.address = address_of(3);
    EXPECT_TRUE(contains(refusal(request), "no certificate of this cluster")) << "it was given for another address";
    request = certified(keys_, 2);
    ++request.certificate.generation;
    EXPECT_TRUE(contains(refusal(request), "no certificate of this cluster")) << "it was given for another process";
    request = certified(keys_, 2);
    request.key = KeyPair().key();
    EXPECT_TRUE(contains(refusal(request), "no certificate of this cluster"));
    request = certified(keys_, 2);
    self_.begin_cluster(0);
    EXPECT_TRUE(contains(refusal(request), "no certificate of this cluster")) << "of another cluster";
    EXPECT_TRUE(asked_.empty());
}

TEST_F(IdClaimsTest, WhoHasTheIdIsAskedBeforeAnotherGetsIt) {
    begin_as(0);
    members_.set(member(2), State::living);
    answers_ = {2};
    EXPECT_TRUE(contains(refusal(certified(keys_, 2)), "another process that is lives"));
    answers_.clear();
    EXPECT_EQ(refusal(certified(keys_, 2)), "it is believed");
    EXPECT_EQ(asked_, (std::vector<NodeId>{2, 2}));
    members_.find(2)->generation = 6;
    EXPECT_TRUE(contains(refusal(certified(keys_, 2)), "is another process by now"));
}

TEST_F(IdClaimsTest, OfTwoMeetingsAtOnceTheLowerIdsGoesOn) {
    begin_as(1);
    opening_ = {0, 2};
    for (const NodeId id : {0U, 2U}) {
        const Request request = certified(keys_, id);
        EXPECT_FALSE(value_or_throw(run(ids_.of_member(request))).is_linked) << "another process is being sought";
        members_.set(member_of(request), State::lost);
        EXPECT_EQ(value_or_throw(run(ids_.of_member(request))).is_linked, id == 2);
    }
}

TEST_F(IdClaimsTest, WhoHasALinkIsToldSoUnlessItSaysThatTheLinkIsNoGood) {
    begin_as(1);
    Request request = certified(keys_, 0);
    members_.set({.id = 0, .generation = 5, .address = request.address, .key = request.key}, State::lost);
    const Linked linked = link_with(0);
    membership_.met(0, linked.adopted, linked.channel, Trust::proven, false);
    EXPECT_TRUE(value_or_throw(run(ids_.of_member(request))).is_linked);
    request.replace = true;
    EXPECT_FALSE(value_or_throw(run(ids_.of_member(request))).is_linked);
}

}  // namespace
}  // namespace rove::test
