// How a node becomes a member: it follows those that send it on, so far; it is let in by the one that gives ids; and it tries to meet the others
// before its start is over.
#include "control/joining.hpp"

#include "meeting_parts.hpp"

namespace rove::test {
namespace {

using control::Joining;
using wire::control::Settled;
using SomePeer = std::shared_ptr<PeerState>;

class JoiningTest : public OpensMeetings {
protected:
    void SetUp() override { self_.listens_at(address_of(1)); }
    ~JoiningTest() override {
        meetings_.drop();
        healing_.drop();
    }
    Result<SomePeer> join(const ByHand& node) { return run(joining_.join(node.address(), node.endpoints())); }

    // Of the cluster's first node, which has also let member 2 in: it listens at the given address.
    Settled settles(const Request& request, const ByHand& giver, const std::string& others_address) {
        if (!first_.is_member()) {
            first_.listens_at(giver.address());
            first_.begin_cluster(0);
        }
        const auto you =
            first_.certify({.id = 1, .generation = 9, .address = request.address, .key = request.key, .signature = {}});
        wire::control::Member zero{
            .id = 0, .generation = 1, .address = giver.address(), .key = giver.keys.key(), .signature = {}};
        wire::control::Member other = member(2);
        other.address = others_address;
        other.key = others_keys_.key();
        return {.certificate = {.id = 1, .generation = 9, .signature = you.signature},
                .cluster = first_.cluster(),
                .members = {first_.certify(zero), first_.certify(other)}};
    }
    // A node that gives ids.
    ByHand::Answer lets_in(const std::unique_ptr<ByHand>& itself, const std::string& others_address) {
        return {.settles = [this, &itself, others_address](const Request& request) {
            return settles(request, *itself, others_address);
        }};
    }

    control::OwnIdentity first_;
    const control::KeyPair others_keys_;
    control::Meetings meetings_{beside_opening_};
    std::vector<NodeId> met_;
    control::Healing healing_{{.thread = thread_,
                               .members = members_,
                               .ids = neighbours_.ids,
                               .name = &IdleLead::name,
                               .meet = [this](NodeId id) -> asio::awaitable<Status> {
                                   met_.push_back(id);
                                   return meetings_.meet_member(id, false);
                               },
                               .give_up = [this](NodeId id, const wire::control::PublicKey& key,
                                                 const std::string& why) { membership_.give_up(id, key, why); }}};
    Joining joining_{{.host = host_,
                      .thread = thread_,
                      .self = self_,
                      .members = members_,
                      .membership = membership_,
                      .meetings = meetings_,
                      .healing = healing_}};
};

TEST_F(JoiningTest, IsLetInByTheOneThatGivesIdsAndMeetsTheOthers) {
    std::unique_ptr<ByHand> giver;
    giver = std::make_unique<ByHand>(*this, std::vector{lets_in(giver, "unix:" + folder_ + "/nobody")});
    const ByHand asked(*this, {{.redirect = giver->address()}});
    const SomePeer peer = value_or_throw(join(asked));
    EXPECT_EQ(peer->id(), 0U);
    EXPECT_TRUE(self_.is_member());
    EXPECT_EQ(self_.certificate().id, 1U);
    EXPECT_EQ(neighbours_.routes.id(), 1U);
    EXPECT_EQ(state_of(0), State::living);
    EXPECT_EQ(met_, std::vector<NodeId>{2}) << "the giver is met already";
    EXPECT_EQ(state_of(2), State::gone) << "the first attempt is over: nobody listens there";
    EXPECT_EQ(asked.came, 1U);
    EXPECT_EQ(giver->came, 1U);
}

TEST_F(JoiningTest, WhereNobodyListensItSaysSoAtOnce) {
    control::Endpoints nowhere;
    std::string address;
    {
        const ByHand gone(*this, {{}});
        address = gone.address();
        nowhere = gone.endpoints();
    }
    const auto end = run(joining_.join(address, nowhere));
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code(), ErrorCode::disconnected);
    EXPECT_TRUE(contains(end.error().message(), "no node answers at " + address)) << end.error().message();
    EXPECT_FALSE(self_.is_member());
}

TEST_F(JoiningTest, NodesThatSendOnToEachOtherAreLeft) {
    const std::string one_at = "unix:" + folder_ + "/one";
    const ByHand other(*this, {{.redirect = one_at}});
    const ByHand one(*this, {{.redirect = other.address()}}, one_at);
    const auto end = join(one);
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code(), ErrorCode::invalid);
    EXPECT_EQ(one.came + other.came, control::kRedirectsMax + 1);
    EXPECT_EQ(peers(), 0U);
    EXPECT_FALSE(self_.is_member());
}

TEST_F(JoiningTest, ANodeThatSendsOnToThisOneIsLeft) {
    const ByHand node(*this, {{.redirect = self_.address()}});
    const auto end = join(node);
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code(), ErrorCode::invalid);
    EXPECT_EQ(node.came, 1U);
}

TEST_F(JoiningTest, ARedirectIsNoNameThatSomebodyIsAskedFor) {
    for (const char* where : {"nonsense", "localhost:1", "8.8.8.8:1"}) {
        const ByHand node(*this, {{.redirect = where}});
        const auto end = join(node);
        ASSERT_FALSE(end) << where;
        EXPECT_EQ(node.came, 1U) << where;
    }
}

TEST_F(JoiningTest, WhoeverSentItOnToOneThatHasEndedIsAskedAgain) {
    std::string ended_at;
    {
        const ByHand ended(*this, {{}});
        ended_at = ended.address();
    }
    std::unique_ptr<ByHand> node;
    node = std::make_unique<ByHand>(
        *this, std::vector{ByHand::Answer{.redirect = ended_at}, ByHand::Answer{.redirect = ended_at},
                           lets_in(node, "unix:" + folder_ + "/nobody")});
    EXPECT_TRUE(join(*node));
    EXPECT_EQ(node->came, 3U);
}

TEST_F(JoiningTest, WithoutACertificateForThisNodeItHasNotJoined) {
    std::unique_ptr<ByHand> giver;
    ByHand::Answer forges{.settles = [&](const Request& request) {
        Settled settled = settles(request, *giver, "unix:" + folder_ + "/nobody");
        settled.certificate.signature.bytes[0] ^= 1;
        return settled;
    }};
    giver = std::make_unique<ByHand>(*this, std::vector{forges});
    const auto end = join(*giver);
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code(), ErrorCode::invalid);
    EXPECT_TRUE(met_.empty());
    EXPECT_EQ(peers(), 0U);
}

}  // namespace
}  // namespace rove::test
