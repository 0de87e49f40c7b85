// Engines without a node around them: two that share a node's state, and what is each one's own.
#include "engine/engine.hpp"

#include <gtest/gtest.h>

#include <array>

#include "base/bytes.hpp"
#include "engines.hpp"
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
        auto ours = value_or_throw(at_server.fabric().open_link()),
             theirs = value_or_throw(at_client.fabric().open_link());
        value_or_throw(at_server.fabric().connect(*ours, theirs->offer()));
        value_or_throw(at_client.fabric().connect(*theirs, ours->offer()));
        const auto met = [](NodeId id, NodeId my_id) {
            return Meeting{.id = id,
                           .my_id = my_id,
                           .member = false,
                           .address = {},
                           .triple = {},
                           .node_count = 1,
                           .resident = {},
                           .hang_up = [](const Error&) {}};
        };
        auto there = value_or_throw(at_server.peers().adopt(met(clients.id(), server_.id()), std::move(ours), nullptr));
        auto here =
            value_or_throw(at_client.peers().adopt(met(server_.id(), clients.id()), std::move(theirs), nullptr));
        return {at_server, at_client, there.peer, here.peer};
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
    EXPECT_EQ(first_.server.peers().on_the_way_to(client_id(0, 1)), first_.to_client);
    EXPECT_EQ(first_.server.peers().on_the_way_to(client_id(0, 2)), nullptr);
    EXPECT_EQ(second_.server.peers().on_the_way_to(client_id(0, 2)), second_.to_client);
}

TEST_F(TwoEngines, ALinkThatEndsIsOneEnginesMatter) {
    const CallId one = ping(first_), two = ping(second_);
    first_.client.peers().lose(first_.to_server, first_.to_server->meeting, Error(ErrorCode::disconnected, "cut"));
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

}  // namespace
}  // namespace rove::test
