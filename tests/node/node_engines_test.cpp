// A node with two engines, each of which has a peer: what concerns a peer reaches the engine that has its link, and what concerns the
// node reaches both.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "api/access.hpp"
#include "engines.hpp"
#include "node/built_ins.hpp"
#include "program/residents.hpp"
#include "rove/edge.h"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

constexpr NodeId kFirst = client_id(0, 1), kSecond = client_id(0, 2);
const std::array<std::byte, 5> kHello{std::byte{'h'}, std::byte{'e'}, std::byte{'l'}, std::byte{'l'}, std::byte{'o'}};

void hello(rove_here* here, const void*, std::size_t) {
    (void)rove_reply(here, kHello.data(), kHello.size());
}

// Waits on the other engine's link.
void ask_the_second(rove_here* here, const void*, std::size_t) {
    rove_pending pending{};
    std::array<std::byte, 5> into{};
    std::size_t size = 0;
    if (rove_here_call(here, kSecond, reinterpret_cast<rove_code>(&hello), nullptr, 0, &pending) != ROVE_OK ||
        rove_pending_take(&pending, into.data(), into.size(), &size) != ROVE_OK)
        return (void)rove_fail(here, rove_last_failure()->message);
    (void)rove_reply(here, into.data(), size);
}
const Resident& asks_the_second() {
    static const Resident& added = Residents::add({.id = resident_id({"test", "asks the second"}),
                                                   .name = "test:asks the second",
                                                   .signature = {},
                                                   .entry = &ask_the_second,
                                                   .built_in = true});
    return added;
}

// Sent on to each of the nodes that the payload names, and answered by the last of them: with more than a frame holds, where a zero follows.
constexpr std::size_t kLargeBytes = 3 * wire::kPayloadBytesMax;
void go_along(rove_here* here, const void* payload, std::size_t size) {
    NodeId next = 0;
    if (size < sizeof next) return hello(here, nullptr, 0);
    std::memcpy(&next, payload, sizeof next);
    if (next != 0) {
        const Bytes rest = Bytes(static_cast<const std::byte*>(payload), size).subspan(sizeof next);
        if (rove_forward(here, next, rest.data(), rest.size()) != ROVE_OK) (void)rove_fail(here, "not sent on");
        return;
    }
    const ByteBuffer large(kLargeBytes, std::byte{'l'});
    (void)rove_reply(here, large.data(), large.size());
}
const Resident& goes_along() {
    static const Resident& added = Residents::add({.id = resident_id({"test", "goes along"}),
                                                   .name = "test:goes along",
                                                   .signature = {},
                                                   .entry = &go_along,
                                                   .built_in = true});
    return added;
}

class NodeOfTwoEngines : public testing::Test {
protected:
    explicit NodeOfTwoEngines(NodeOptions options = {}) : core_(make(std::move(options))) {
        (void)Residents::add({.id = resident_id({"test", "hello"}),
                              .name = "test:hello",
                              .signature = {},
                              .entry = &hello,
                              .built_in = true});
        core_->ids().set_node_count(kNodes);
    }
    // A client, or another member, that is served by a thread of its own.
    struct Client {
        Client(NodeOfTwoEngines& test, unsigned engine, NodeId id)
            : engines(*test.lent_, id),
              own(engines.add(test.exchange_)),
              met(meet(*test.core_->engines()[engine], 0, own, id)) {
            engines.state().ids.set_node_count(kNodes);
        }
        ~Client() {
            stop = true;
            thread.join();
        }
        // It answers nothing more, until it is told to.
        void rest() {
            rests = true;
            while (!is_at_rest) std::this_thread::yield();
        }
        void go_on() { rests = false; }
        // A function of the node, from there.
        [[nodiscard]] CallId call(const Resident& function, Bytes payload = Bytes(kHello)) {
            return value_or_throw(own.caller().call(
                met.first, {.callee = {.id = &function.id, .name = function.name, .own = true}, .payload = payload}));
        }
        [[nodiscard]] CallId along(const std::vector<NodeId>& path) {
            return call(goes_along(), std::as_bytes(std::span(path)));
        }
        [[nodiscard]] bool has_ended(CallId call) {
            return soon([&] { return own.own_calls().test(call); });
        }

        Engines engines;
        Engine& own;
        Met met;
        std::atomic<bool> rests{false}, is_at_rest{false}, stop{false};
        std::thread thread{[this] {
            while (!stop) {
                is_at_rest = rests.load();
                if (is_at_rest)
                    std::this_thread::sleep_for(1ms);
                else
                    own.poll(1ms);
            }
        }};
    };
    [[nodiscard]] std::shared_ptr<NodeCore> make(NodeOptions options) const {
        options.listen = "127.0.0.1:0";
        options.buffer_bytes_max = kBufferBytes;
        options.log = "error";
        NodeCore::Fabrics fabrics;
        for (int i = 0; i < 2; ++i) fabrics.push_back(value_or_throw(fabric::LoopbackFabric::open(exchange_)));
        return value_or_throw(NodeCore::create(std::move(options), std::move(fabrics)));
    }
    [[nodiscard]] Peer peer(NodeId id) const { return value_or_throw(detail::Inside::peer(*core_, id)); }
    [[nodiscard]] Engine& engine(unsigned which) const { return *core_->engines()[which]; }
    // A function has not ended with the node.
    [[nodiscard]] bool is_abandoned() const { return core_.use_count() > 1; }

    // Calls that are on that peer for others.
    [[nodiscard]] std::size_t sent_on_to(unsigned which, const PeerState& peer) const {
        const Hold hold(engine(which).lock());
        return peer.sends.sent_on.size();
    }

    static constexpr std::uint32_t kNodes = 3;
    static constexpr std::size_t kBufferBytes = 8192;
    const std::shared_ptr<NodeCore> lent_ = lent_node();
    const std::shared_ptr<fabric::Exchange> exchange_ = std::make_shared<fabric::Exchange>();
    const std::shared_ptr<NodeCore> core_;
    Client first_{*this, 0, kFirst}, second_{*this, 1, kSecond};
};

ErrorCode code_of(const auto& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.code();
    }
    return ErrorCode::ok;
}

TEST_F(NodeOfTwoEngines, ACallGoesByTheEngineThatHasThePeer) {
    const Peer one = peer(kFirst), two = peer(kSecond);
    for (unsigned i = 0; i < 3; ++i) (void)two.ping(kHello).get();
    EXPECT_EQ(two.counters().frames_sent, 3U);
    EXPECT_EQ(one.counters().frames_sent, 0U);
    (void)one.ping(kHello).get();
    EXPECT_EQ(one.counters().frames_sent, 1U);
    EXPECT_EQ(two.node(), kSecond);
}

TEST_F(NodeOfTwoEngines, ABufferIsFreedOverTheLinkThatItCameBy) {
    const Peer two = peer(kSecond);
    two.allocate<char>(5).get();
    EXPECT_EQ(two.counters().frames_sent, 2U) << "it was allocated and freed";
    EXPECT_EQ(peer(kFirst).counters().frames_sent, 0U);
}

TEST_F(NodeOfTwoEngines, AFunctionReachesThePeersOfBoth) {
    for (const NodeId to : {kFirst, kSecond}) {
        rove_here here{&engine(0), nullptr, {.node = kFirst}, RanAs::resident};
        rove_pending pending{};
        ASSERT_EQ(rove_here_call(&here, to, reinterpret_cast<rove_code>(&hello), nullptr, 0, &pending), ROVE_OK)
            << rove_last_failure()->message;
        EXPECT_EQ(pending.engine, &engine(to == kFirst ? 0 : 1));
        std::array<std::byte, 5> into{};
        std::size_t size = 0;
        ASSERT_EQ(rove_pending_take(&pending, into.data(), into.size(), &size), ROVE_OK);
        EXPECT_EQ(into, kHello);
    }
}

// The answer arrives at the one, and the other has the caller's link.
TEST_F(NodeOfTwoEngines, AnAnswerIsPassedOnFromTheOneToTheOther) {
    const Client member(*this, 1, 1);
    for (unsigned i = 0; i < 3; ++i) {
        const CallId call = first_.along({1});
        ASSERT_TRUE(first_.has_ended(call));
        const CallEnd end = value_or_throw(first_.own.own_calls().finish(call));
        EXPECT_EQ(as_text(Bytes(end.data)), "hello");
        EXPECT_EQ(end.node, 1U);
    }
    EXPECT_EQ(sent_on_to(1, *member.met.second), 0U);
}

TEST_F(NodeOfTwoEngines, AnAnswerInPartsIsPassedOnToo) {
    const Client member(*this, 1, 1);
    const CallId call = first_.along({1, 0});
    ASSERT_TRUE(first_.has_ended(call));
    const CallEnd end = value_or_throw(first_.own.own_calls().finish(call));
    EXPECT_EQ(end.large.size(), kLargeBytes);
}

// Large results wait for room at the link over which they are sent.
TEST_F(NodeOfTwoEngines, AFunctionAnswersByTheEngineThatHasTheWay) {
    const Client one(*this, 0, 1);
    for (unsigned own = 0; own < 2; ++own) {
        const auto answers_by = [&](wire::CallContext call) { return &core_->engine_to_answer(call, engine(own)); };
        EXPECT_EQ(answers_by({.node = client_id(1, 7)}), &engine(0)) << "the member is its home";
        EXPECT_EQ(answers_by({.node = kSecond}), &engine(1));
        EXPECT_EQ(answers_by({.node = 2}), &engine(own)) << "nobody has a link there";
        for (const std::uint32_t maker : {0U, 1U})
            EXPECT_EQ(answers_by({.generation = 6 + maker, .node = 0}), &engine(maker)) << "its own call";
    }
}

// The one has made the call, and the member that answers it has a link of the other.
TEST_F(NodeOfTwoEngines, AnAnswerReachesTheEngineThatHasMadeTheCall) {
    Client one(*this, 0, 1), two(*this, 1, 2);
    const Met both = meet(one.own, 1, two.own, 2);
    (void)goes_along();
    rove_here here{&engine(0), nullptr, {.node = 0}, RanAs::resident};
    for (const std::vector<NodeId>& path : {std::vector<NodeId>{2}, std::vector<NodeId>{2, 0}}) {
        rove_pending pending{};
        ASSERT_EQ(rove_here_call(&here, 1, reinterpret_cast<rove_code>(&go_along), path.data(),
                                 path.size() * sizeof(NodeId), &pending),
                  ROVE_OK)
            << rove_last_failure()->message;
        EXPECT_EQ(pending.engine, &engine(0));
        ByteBuffer into(kLargeBytes);
        std::size_t size = 0;
        ASSERT_EQ(rove_pending_wait(&pending, 20'000'000'000), ROVE_OK);
        ASSERT_EQ(rove_pending_take(&pending, into.data(), into.size(), &size), ROVE_OK)
            << rove_last_failure()->message;
        EXPECT_EQ(size, path.size() == 1 ? kHello.size() : kLargeBytes);
    }
}

// Neither another client, nor a member whose links are with the other engine: it was not asked by way of members.
TEST_F(NodeOfTwoEngines, NobodyElseAnswersACallToAClient) {
    Client member(*this, 1, 1);
    first_.rest();
    rove_here here{&engine(0), nullptr, {.node = kFirst}, RanAs::resident};
    rove_pending pending{};
    ASSERT_EQ(rove_here_call(&here, kFirst, reinterpret_cast<rove_code>(&hello), nullptr, 0, &pending), ROVE_OK);
    for (Client* const liar : {&second_, &member}) {
        {
            const Hold hold(liar->own.lock());
            fabric::Link& link = *liar->met.first->link();
            ASSERT_NE(link.reserve(fabric::Traffic::prompt, wire::kHeaderBytes), nullptr);
            link.publish(fabric::Traffic::prompt, {.kind = wire::Kind::reply,
                                                   .handle = 1,
                                                   .generation = pending.generation,
                                                   .node = 0,
                                                   .call = static_cast<std::uint16_t>(pending.slot)});
        }
        const CallId after = liar->call(goes_along(), {});
        EXPECT_TRUE(liar->has_ended(after)) << "it was cut off, or its lie is not read yet";
        EXPECT_EQ(rove_pending_wait(&pending, 10'000'000), ROVE_TIMED_OUT);
    }
    first_.go_on();
    std::array<std::byte, 5> into{};
    std::size_t size = 0;
    ASSERT_EQ(rove_pending_take(&pending, into.data(), into.size(), &size), ROVE_OK);
    EXPECT_EQ(into, kHello);
}

// It calls in the name of this node, which answers that as if it had sent the call on to itself.
TEST_F(NodeOfTwoEngines, AMemberDoesNotHaveThisNodeAnswerACallToAClient) {
    first_.rest();
    for (const unsigned of : {0U, 1U}) {
        Client member(*this, of, 1 + of);
        rove_here here{&engine(0), nullptr, {.node = kFirst}, RanAs::resident};
        rove_pending pending{};
        ASSERT_EQ(rove_here_call(&here, kFirst, reinterpret_cast<rove_code>(&hello), nullptr, 0, &pending), ROVE_OK);
        {
            const Hold hold(member.own.lock());
            fabric::Link& link = *member.met.first->link();
            ASSERT_NE(link.reserve(fabric::Traffic::calls, wire::kHeaderBytes), nullptr);
            link.publish(fabric::Traffic::calls, {.kind = wire::Kind::ping,
                                                  .generation = pending.generation,
                                                  .node = 0,
                                                  .call = static_cast<std::uint16_t>(pending.slot),
                                                  .hops = 1});
        }
        EXPECT_TRUE(member.has_ended(member.call(goes_along(), {}))) << "what it has sent is not read yet";
        EXPECT_EQ(rove_pending_wait(&pending, 10'000'000), ROVE_TIMED_OUT);
        rove_pending_drop(&pending);
    }
    first_.go_on();
}

// It was sent on by the one, on to a third, and answered over a link of the other.
TEST_F(NodeOfTwoEngines, WhatIsAnsweredByAnotherWayIsOver) {
    Client one(*this, 1, 1), two(*this, 0, 2);
    const Met both = meet(one.own, 1, two.own, 2);
    const CallId call = first_.along({1, 2});
    ASSERT_TRUE(first_.has_ended(call));
    EXPECT_EQ(value_or_throw(first_.own.own_calls().finish(call)).node, 2U);
    EXPECT_TRUE(soon([&] { return sent_on_to(1, *one.met.second) == 0; }));
}

TEST_F(NodeOfTwoEngines, CallsOfACallerThatHasGoneAreOver) {
    Client one(*this, 1, 1);
    one.rest();
    (void)first_.along({1});
    EXPECT_TRUE(soon([&] { return sent_on_to(1, *one.met.second) == 1; }));
    engine(0).peers().lose(first_.met.second, first_.met.second->meeting(), Error(ErrorCode::disconnected, "ended"));
    EXPECT_TRUE(soon([&] { return sent_on_to(1, *one.met.second) == 0; }));
    one.go_on();
}

TEST_F(NodeOfTwoEngines, HasAsManyPeersTogetherAsANodeMay) {
    PeerPlaces& places = core_->shared().places;
    for (std::size_t taken = 2; taken < kPeersMax; ++taken) ASSERT_TRUE(places.take());
    NodeId number = 100;
    const auto meet_one = [&](unsigned which) {
        auto link = value_or_throw(engine(which).fabric().open_link());
        return engine(which).peers().adopt(
            {.peer = {.id = client_id(0, ++number), .my_id = 0}, .resident = {}, .hang_up = [](const Error&) {}},
            std::move(link), nullptr);
    };
    for (unsigned which = 0; which < 2; ++which) {
        const auto refused = meet_one(which);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
    }
    places.give_back();
    auto met = meet_one(1);
    ASSERT_TRUE(met) << met.error().message();
    EXPECT_FALSE(meet_one(0));
    engine(1).peers().lose(met->peer, met->meeting, Error(ErrorCode::disconnected, "it left"));
    met->peer.reset();
    EXPECT_TRUE(soon([&] { return meet_one(0).has_value(); })) << "its place is kept";
    for (std::size_t taken = 3; taken < kPeersMax; ++taken) places.give_back();
}

class NodeOfTwoEnginesWithoutThreads : public NodeOfTwoEngines {
protected:
    NodeOfTwoEnginesWithoutThreads() : NodeOfTwoEngines({.own_thread = false}) {}
};

TEST_F(NodeOfTwoEnginesWithoutThreads, APollServesBoth) {
    Client one(*this, 1, 1);
    const CallId calls[] = {first_.along({1}), second_.call(asks_the_second())};
    EXPECT_TRUE(soon([&] {
        (void)core_->poll(5ms);
        return first_.own.own_calls().test(calls[0]) && second_.own.own_calls().test(calls[1]);
    }));
    EXPECT_TRUE(first_.own.own_calls().finish(calls[0]));
    EXPECT_TRUE(second_.own.own_calls().finish(calls[1]));
}

// Too much is left for it: what peers send now waits in their mailboxes, for as long as it takes some.
TEST_F(NodeOfTwoEnginesWithoutThreads, NeitherTakesFramesWhileOneIsBehind) {
    const OtherEngines others(core_->shared().between, 0);
    const auto served_while_waiting = [&]() -> std::optional<bool> {
        while (!others.must_wait())
            EXPECT_TRUE(others.leave(1, LeftForEngine::What::answered, {{.node = kFirst}, {}, {}}));
        const CallId call = first_.call(goes_along(), {});
        (void)engine(0).poll(5ms);
        const bool ended = first_.own.own_calls().test(call), waited = others.must_wait();
        // Nobody takes what is left for the other one, and nobody waits for ever.
        EXPECT_TRUE(soon([&] {
            (void)engine(0).poll(5ms);
            return first_.own.own_calls().test(call);
        }));
        EXPECT_TRUE(first_.own.own_calls().finish(call));
        while (core_->poll(0ms) > 0) continue;
        return waited ? std::optional(ended) : std::nullopt;  // a busy machine has let too much time pass
    };
    std::optional<bool> served;
    EXPECT_TRUE(soon([&] { return (served = served_while_waiting()).has_value(); }));
    EXPECT_EQ(served, false);
}

TEST_F(NodeOfTwoEnginesWithoutThreads, APollOfBothWaitsAndIsEnded) {
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(core_->poll(30ms), 0U);
    EXPECT_GE(std::chrono::steady_clock::now() - begun, 30ms);
    std::atomic<bool> over{false};
    std::thread polls([&] {
        (void)core_->poll(-1ms);
        over = true;
    });
    std::this_thread::sleep_for(5ms);
    EXPECT_FALSE(over);
    core_->interrupt();
    EXPECT_TRUE(soon([&] { return over.load(); }));
    if (!over) core_->shut_down();
    polls.join();
}

class NodeOfTwoEnginesWithOneThread : public NodeOfTwoEngines {
protected:
    NodeOfTwoEnginesWithOneThread() : NodeOfTwoEngines({.threads = 1}) {}
};

// What the function waits for could be a call that arrives there.
TEST_F(NodeOfTwoEnginesWithOneThread, AnEngineServesWhileItsFunctionWaitsForACallOfTheOther) {
    second_.rest();
    const CallId asks = first_.call(asks_the_second());
    ASSERT_TRUE(soon([&] { return core_->engines()[1]->peers().counters(*second_.met.second).frames_sent > 0; }))
        << "it has not called";
    const CallId ping = value_or_throw(first_.own.caller().ping(first_.met.first, kHello, true, std::nullopt));
    EXPECT_TRUE(first_.has_ended(ping));
    EXPECT_FALSE(first_.own.own_calls().test(asks));
    second_.go_on();
    EXPECT_TRUE(first_.has_ended(asks));
    EXPECT_TRUE(first_.own.own_calls().finish(asks));
    EXPECT_TRUE(first_.own.own_calls().finish(ping));
}

// Memory of a caller that has gone is freed at once.
TEST_F(NodeOfTwoEngines, KnowsTheOwnersOfBoth) {
    EXPECT_TRUE(core_->knows_owner(kFirst));
    EXPECT_FALSE(core_->knows_owner(client_id(0, 3)));
    rove_here here{&engine(0), nullptr, {.node = kSecond}, RanAs::resident};
    const std::uint64_t bytes = kBufferBytes;
    Residents::find(built_ins().allocate)->entry(&here, &bytes, sizeof bytes);
    EXPECT_FALSE(core_->shared().memory.allocate(1, kFirst)) << "all of it is taken";
}

TEST_F(NodeOfTwoEngines, AThreadWaitsForTheFirstOfCallsOfBoth) {
    first_.rest();
    second_.rest();
    rove_here here{&engine(0), nullptr, {.node = kFirst}, RanAs::resident};
    std::array<rove_pending, 2> pending{};
    const auto call = [&](NodeId to, rove_pending& out) {
        ASSERT_EQ(rove_here_call(&here, to, reinterpret_cast<rove_code>(&hello), nullptr, 0, &out), ROVE_OK);
    };
    call(kFirst, pending[0]);
    call(kSecond, pending[1]);
    std::size_t which = 7;
    EXPECT_EQ(rove_pending_any(pending.data(), 2, 1'000'000, &which), ROVE_TIMED_OUT);
    second_.go_on();
    ASSERT_EQ(rove_pending_any(pending.data(), 2, -1, &which), ROVE_OK);
    EXPECT_EQ(which, 1U);
    rove_pending_drop(&pending[1]);
    second_.rest();
    call(kSecond, pending[1]);
    first_.go_on();
    ASSERT_EQ(rove_pending_any(pending.data(), 2, -1, &which), ROVE_OK);
    EXPECT_EQ(which, 0U);
    for (rove_pending& each : pending) rove_pending_drop(&each);
}

TEST_F(NodeOfTwoEngines, OneEndsAndTheOtherServesOn) {
    const Peer one = peer(kFirst), two = peer(kSecond);
    EXPECT_TRUE(engine(1).end());
    EXPECT_EQ(code_of([&] { (void)two.ping(kHello).get(); }), ErrorCode::cancelled);
    (void)one.ping(kHello).get();
}

class NodeOfTwoEnginesWithLittleGrace : public NodeOfTwoEngines {
protected:
    NodeOfTwoEnginesWithLittleGrace() : NodeOfTwoEngines({.grace = 2'000ms}) {}
};

// While a function of the one waits for a call of the other, neither has ended.
TEST_F(NodeOfTwoEnginesWithLittleGrace, BothShareOneGrace) {
    second_.rest();
    const CallId asks = first_.call(asks_the_second());
    ASSERT_TRUE(soon([&] { return engine(1).peers().counters(*second_.met.second).frames_sent > 0; }));
    core_->shut_down();
    EXPECT_FALSE(is_abandoned()) << "its call was not ended in time";
    ASSERT_TRUE(first_.has_ended(asks));
    const Result<CallEnd> ended = first_.own.own_calls().finish(asks);
    ASSERT_FALSE(ended);
}

TEST_F(NodeOfTwoEngines, EndsBoth) {
    const Peer one = peer(kFirst), two = peer(kSecond);
    second_.rest();
    RawCall waits = two.ping(kHello);
    EXPECT_TRUE(core_->is_usable());
    core_->shut_down();
    EXPECT_EQ(code_of([&] { (void)waits.get(); }), ErrorCode::cancelled);
    for (const Peer& each : {one, two})
        EXPECT_EQ(code_of([&] { (void)each.ping(kHello).get(); }), ErrorCode::cancelled);
    EXPECT_TRUE(engine(0).is_stopped());
    EXPECT_TRUE(engine(1).is_stopped());
    EXPECT_FALSE(core_->is_usable());
}

TEST_F(NodeOfTwoEngines, IsFoundByEitherEngine) {
    EXPECT_EQ(NodeCore::living(&engine(0)), core_);
    EXPECT_EQ(NodeCore::living(&engine(1)), core_);
}

}  // namespace
}  // namespace rove::test
