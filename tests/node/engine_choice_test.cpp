// Which engine gets the link to whom: EngineChoice alone, and beside it nodes with several engines that meet others.
#include "node/engine_choice.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>

#include "engines.hpp"
#include "node/options.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

class EngineChoiceTest : public testing::Test {
protected:
    [[nodiscard]] std::shared_ptr<NodeCore> make(unsigned engines, NodeOptions options = {}) const {
        (void)scratch();  // the tests' own cookie
        NodeCore::Fabrics fabrics;
        while (fabrics.size() < engines) fabrics.push_back(value_or_throw(fabric::LoopbackFabric::open(exchange_)));
        options.log = "off";
        return value_or_throw(NodeCore::create(std::move(options), std::move(fabrics)));
    }
    static std::size_t peers_of(const NodeCore& core, std::size_t engine) {
        return core.engines()[engine]->peers().count();
    }
    static void answers(const std::shared_ptr<PeerState>& peer) {
        const CallId call = value_or_throw(peer->engine->caller().ping(peer, {}, true, std::nullopt));
        EXPECT_TRUE(peer->engine->own_calls().wait(call, Clock::now() + 10s));
        EXPECT_TRUE(peer->engine->own_calls().finish(call));
    }

    static control::ChosenEngine chosen(Engine& engine) {
        return {.fabric = &engine.fabric(), .peers = &engine.peers()};
    }

    const std::shared_ptr<fabric::Exchange> exchange_ = std::make_shared<fabric::Exchange>();
    const std::shared_ptr<NodeCore> node_ = make(2, {.listen = "127.0.0.1:0"});
    Engine& first_ = *node_->engines()[0];
    Engine& second_ = *node_->engines()[1];
    EngineChoice choice_{node_->engines()};
};

TEST(NodeOptionsEngines, SayHowManyThereAre) {
    for (const unsigned engines : {1U, 2U, 5U}) {
        const auto node = lent_node({.engines = engines});
        EXPECT_EQ(node->engines().size(), engines);
    }
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    EXPECT_EQ(lent_node({.engines = kEnginesAuto})->engines().size(),
              std::min<std::size_t>(CPU_COUNT(&allowed), kEnginesAutoMax));
    EXPECT_EQ(lent_node({.own_thread = false, .engines = kEnginesAuto})->engines().size(), 1U) << "nobody to poll them";
    const auto driven = NodeCore::create({.own_thread = false, .engines = 2});
    ASSERT_FALSE(driven);
    EXPECT_EQ(driven.error().code(), ErrorCode::invalid);
    EXPECT_NE(driven.error().message().find("need threads of the node's own"), std::string::npos);
    for (const unsigned engines : {0U, 65U})
        EXPECT_EQ(NodeCore::create({.engines = engines}).error().message().substr(0, 17),
                  fmt::format("option engines is"));
}

TEST_F(EngineChoiceTest, MeetingsThatAreUnderWayCountAsPeers) {
    EXPECT_EQ(choice_.choose(nullptr, kNoNode).peers, &first_.peers());
    EXPECT_EQ(choice_.choose(nullptr, kNoNode).peers, &second_.peers());
    choice_.release(chosen(second_));
    EXPECT_EQ(choice_.choose(nullptr, kNoNode).peers, &second_.peers());
    choice_.release(chosen(second_));
    choice_.release(chosen(first_));
    EXPECT_EQ(choice_.choose(nullptr, kNoNode).peers, &first_.peers());
}

// Both sides may begin at once.
TEST_F(EngineChoiceTest, AllMeetingsWithAMemberHaveOneEngine) {
    EXPECT_EQ(choice_.choose(nullptr, 7).peers, &first_.peers());
    EXPECT_EQ(choice_.choose(nullptr, 7).peers, &first_.peers());
    EXPECT_EQ(choice_.choose(nullptr, 8).peers, &second_.peers());
    EXPECT_EQ(choice_.choose(nullptr, 8).peers, &second_.peers());
}

TEST_F(EngineChoiceTest, APeerThatIsMetAgainKeepsItsEngine) {
    const PeerState peer(*std::make_unique<std::size_t>(0), &second_);
    EXPECT_EQ(choice_.choose(&peer, kNoNode).peers, &second_.peers());
    EXPECT_EQ(choice_.choose(&peer, 7).peers, &second_.peers());
    EXPECT_EQ(choice_.choose(nullptr, 7).peers, &second_.peers()) << "so has the member";
}

TEST_F(EngineChoiceTest, TwoEnginesNeverHaveLinksToOneMember) {
    (void)choice_.choose(nullptr, 7);
    std::unique_ptr<fabric::Link> link = value_or_throw(second_.fabric().open_link());
    const auto adopted = choice_.adopt(chosen(second_), {.peer = {.id = 7, .member = true}}, link, nullptr);
    ASSERT_FALSE(adopted);
    EXPECT_EQ(adopted.error().code(), ErrorCode::overloaded);
    EXPECT_EQ(second_.peers().count(), 0U);
    ASSERT_TRUE(link);
    second_.fabric().drop(std::move(link));
}

TEST_F(EngineChoiceTest, ClientsShareTheEngines) {
    std::vector<std::shared_ptr<NodeCore>> clients;
    for (int i = 0; i < 4; ++i) {
        clients.push_back(make(1));
        answers(value_or_throw(clients.back()->connect(node_->address())));
    }
    EXPECT_EQ(peers_of(*node_, 0), 2U);
    EXPECT_EQ(peers_of(*node_, 1), 2U);
}

TEST_F(EngineChoiceTest, AClientOfManyNodesSharesThemAmongItsEngines) {
    const auto client = make(2);
    std::vector<std::shared_ptr<NodeCore>> nodes;
    for (int i = 0; i < 4; ++i) {
        nodes.push_back(make(1, {.listen = "127.0.0.1:0"}));
        answers(value_or_throw(client->connect(nodes.back()->address())));
        answers(value_or_throw(client->connect(nodes.front()->address())));
    }
    EXPECT_EQ(peers_of(*client, 0), 2U);
    EXPECT_EQ(peers_of(*client, 1), 2U);
}

// However many peers each engine has by then.
TEST_F(EngineChoiceTest, AMemberThatIsMetAgainKeepsItsEngine) {
    auto client = make(1);
    answers(value_or_throw(client->connect(node_->address())));
    const auto member = make(2, {.listen = "127.0.0.1:0", .join = node_->address()});
    const std::shared_ptr<PeerState> peer = value_or_throw(second_.peers().linked(member->id()));
    client.reset();
    ASSERT_TRUE(soon([&] { return first_.peers().count() == 0; }));
    for (int i = 0; i < 3; ++i) {
        const std::uint64_t meeting = peer->meeting();
        second_.peers().lose(peer, meeting, Error(ErrorCode::disconnected, "the test cut it"));
        ASSERT_TRUE(soon([&] { return peer->meeting() != meeting && second_.peers().linked(*peer); }));
        answers(peer);
        EXPECT_EQ(first_.peers().count(), 0U);
    }
}

}  // namespace
}  // namespace rove::test
