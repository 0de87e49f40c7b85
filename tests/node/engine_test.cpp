// Engines without a node around them: two that share a node's state, and what is each one's own.
#include "engine/engine.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "base/bytes.hpp"
#include "engine_view.hpp"
#include "engines.hpp"
#include "program/residents.hpp"
#include "some_package.hpp"
#include "soon.hpp"

namespace rove::test {

using namespace std::chrono_literals;

namespace {

// A server's two engines, each with a client of its own. One thread works for all of them.
class TwoEngines : public testing::Test {
protected:
    struct Pair {
        Engine& server;
        Engine& client;
        std::shared_ptr<PeerState> to_client, to_server;
    };

    Pair meet(Engine& at_server, Engines& clients) {
        Engine& at_client = clients.add(exchange_);
        const Met met = test::meet(at_server, server_.id(), at_client, clients.id());
        return {at_server, at_client, met.second, met.first};
    }
    // Until the call has ended, which this thread has all engines work for.
    [[nodiscard]] Result<CallEnd> end_of(Engine& caller, CallId call) {
        EXPECT_TRUE(soon([&] {
            for (Engine* each : {&first_.server, &first_.client, &second_.server, &second_.client}) each->poll(0ms);
            return caller.own_calls().test(call);
        }));
        return caller.own_calls().finish(call);
    }
    [[nodiscard]] static CallId ping(const Pair& pair) {
        return value_or_throw(pair.client.caller().ping(pair.to_server, kHello, true, std::nullopt));
    }
    inline static const std::array<std::byte, 5> kHello{std::byte{'h'}, std::byte{'e'}, std::byte{'l'}, std::byte{'l'},
                                                        std::byte{'o'}};
    const std::shared_ptr<NodeCore> node_ = lent_node();
    const std::shared_ptr<fabric::Exchange> exchange_ = std::make_shared<fabric::Exchange>();
    // It knows one package at a time.
    Engines server_{*node_, 0, {.packages_max = 1}}, first_client_{*node_, client_id(0, 1)},
        second_client_{*node_, client_id(0, 2)};
    Pair first_ = meet(server_.add(exchange_), first_client_), second_ = meet(server_.add(exchange_), second_client_);
};

TEST_F(TwoEngines, EachAnswersItsOwnPeer) {
    const CallId one = ping(first_), two = ping(second_);
    EXPECT_TRUE(end_of(second_.client, two));
    EXPECT_TRUE(end_of(first_.client, one));
    EXPECT_EQ(first_.server.peers().count(), 1U);
    EXPECT_EQ(second_.server.peers().count(), 1U);
    EXPECT_EQ(first_.server.peers().counters(*first_.to_client).frames_received, 1U);
    EXPECT_EQ(second_.server.peers().counters(*second_.to_client).frames_received, 1U);
}

// The other's peers are under another lock.
TEST_F(TwoEngines, KnowTheirOwnPeersAlone) {
    EXPECT_EQ(first_.to_client->engine, &first_.server);
    EXPECT_EQ(second_.to_client->engine, &second_.server);
    EXPECT_EQ(EngineView::on_the_way_to(first_.server, client_id(0, 1)), first_.to_client);
    EXPECT_EQ(EngineView::on_the_way_to(first_.server, client_id(0, 2)), nullptr);
    EXPECT_EQ(EngineView::on_the_way_to(second_.server, client_id(0, 2)), second_.to_client);
}

TEST_F(TwoEngines, GiveNoTwoPeersOneName) {
    Engines theirs(*node_, 0), others(*node_, 0);  // of two other clusters, of which this node is a client
    const Met one = test::meet(first_.server, client_id(0, 7), theirs.add(exchange_), 0);
    const Met two = test::meet(second_.server, client_id(0, 7), others.add(exchange_), 0);
    EXPECT_EQ(one.second->id(), two.second->id());
    EXPECT_NE(one.second->back(), two.second->back());
}

TEST_F(TwoEngines, WhatIsKeptForAMemberIsSentByTheOneThatMeetsIt) {
    server_.state().absent.lost(2, {}, "the link to it was cut");
    ASSERT_EQ(
        server_.state().absent.keep(2, {.kind = wire::Kind::reply, .node = 2, .call = 7}, {}, kHello, Clock::now()),
        AbsentMembers::Kept::yes);
    Engines member(*node_, 2);
    const Met met = test::meet(second_.server, server_.id(), member.add(exchange_), member.id());
    EXPECT_EQ(second_.server.peers().counters(*met.second).frames_sent, 1U);
    EXPECT_EQ(EngineView::replies_kept(second_.server), 0U);
}

// Its code, and what is known of how long it runs, are the node's.
TEST_F(TwoEngines, RunOneFunctionAtOnce) {
    static std::atomic<unsigned> runs;
    runs = 0;
    static const Resident& counts = Residents::add({.id = resident_id({"test", "counts"}),
                                                    .name = "test:counts",
                                                    .signature = {},
                                                    .entry =
                                                        [](rove_here*, const void*, std::size_t) {
                                                            if (++runs % 16 == 0) std::this_thread::sleep_for(1ms);
                                                        },
                                                    .built_in = true});
    constexpr unsigned kCalls = 200;
    const auto call = [](const Pair& pair) {
        for (unsigned i = 0; i < kCalls; ++i) {
            const CallId id = value_or_throw(pair.client.caller().call(
                pair.to_server,
                {.callee = {.id = &counts.id, .name = counts.name, .own = true}, .payload = Bytes(kHello)}));
            while (!pair.client.own_calls().test(id)) {
                pair.server.poll(0ms);
                pair.client.poll(0ms);
            }
            EXPECT_TRUE(pair.client.own_calls().finish(id));
        }
    };
    std::thread beside([&] { call(first_); });
    call(second_);
    beside.join();
    EXPECT_EQ(runs, 2 * kCalls);
}

TEST_F(TwoEngines, ALinkThatEndsIsOneEnginesMatter) {
    const CallId one = ping(first_), two = ping(second_);
    first_.client.peers().lose(first_.to_server, first_.to_server->meeting(), Error(ErrorCode::disconnected, "cut"));
    first_.client.poll(0ms);  // before the server answers
    const Result<CallEnd> cut = end_of(first_.client, one);
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code(), ErrorCode::disconnected);
    EXPECT_TRUE(end_of(second_.client, two));
}

// Either may have looked up a function of it.
TEST_F(TwoEngines, WhatTheCacheForgetsStaysUntilBothHaveHadATurn) {
    for (const auto& [one, other] : {std::pair{&first_.server, &second_.server}, {&second_.server, &first_.server}}) {
        std::weak_ptr<PackageStore> stays = value_or_throw(server_.cache().add(some_package({"first"}, {}), false));
        value_or_throw(server_.cache().add(some_package({"second"}, {}), false));
        EXPECT_EQ(server_.cache().find("some:first"), nullptr);
        one->poll(0ms);
        EXPECT_FALSE(stays.expired());
        other->poll(0ms);
        EXPECT_TRUE(stays.expired());
    }
}

// All that is asked of a peer is asked of the engine that it was made by.
TEST_F(TwoEngines, NoneBringsAPeerOfTheOtherBackToLife) {
    auto link = value_or_throw(second_.server.fabric().open_link());
    const auto adopted = second_.server.peers().adopt({.peer = {.id = client_id(0, 1), .my_id = 0}, .replace = true},
                                                      std::move(link), first_.to_client);
    ASSERT_FALSE(adopted);
    EXPECT_EQ(adopted.error().code(), ErrorCode::overloaded);
    EXPECT_TRUE(first_.server.peers().linked(*first_.to_client));
    EXPECT_EQ(second_.server.peers().count(), 1U);
}

TEST_F(TwoEngines, OneEndsAndTheOtherServesOn) {
    const CallId one = ping(first_), two = ping(second_);
    EXPECT_TRUE(first_.client.end());
    EXPECT_TRUE(first_.client.is_stopped());
    EXPECT_FALSE(second_.client.is_stopped());
    const Result<CallEnd> ended = first_.client.own_calls().finish(one);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code(), ErrorCode::cancelled);
    EXPECT_TRUE(end_of(second_.client, two));
}

TEST_F(TwoEngines, AServersOneEndsAndItsOtherServesOn) {
    const CallId kept = value_or_throw(first_.server.caller().ping(first_.to_client, kHello, true, std::nullopt));
    std::thread beside([&] {
        EXPECT_TRUE(first_.server.end());
        first_.server.drop_links();
    });
    for (unsigned i = 0; i < 100; ++i) {
        const CallId call = ping(second_);
        while (!second_.client.own_calls().test(call)) {
            second_.server.poll(0ms);
            second_.client.poll(0ms);
        }
        EXPECT_TRUE(second_.client.own_calls().finish(call));
    }
    beside.join();
    const Result<CallEnd> ended = first_.server.own_calls().finish(kept);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code(), ErrorCode::cancelled);
    EXPECT_FALSE(first_.server.is_usable());
    EXPECT_TRUE(second_.server.is_usable());
}

}  // namespace
}  // namespace rove::test
