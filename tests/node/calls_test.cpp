// Calls, on every fabric.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <optional>
#include <thread>

#include "../api/error_of.hpp"
#include "beside_node.hpp"
#include "bytes.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

class Calls : public BesideANode {
protected:
    Reply call(std::string_view entry, std::string_view payload = {}) {
        return peer_->call(package_->entry(entry), bytes(payload)).reply();
    }
    // In this program; its functions find that object.
    [[nodiscard]] static Node node_with(void* object) {
        NodeOptions options;
        options.listen = "127.0.0.1:0";
        options.fabric = GetParam();
        options.host_object = object;
        return Node(started(options));
    }
};

TEST_P(Calls, TakeTheLaneThatWasChosen) {
    EXPECT_EQ(peer_->lane(), GetParam().lane);
}

TEST_P(Calls, RunAFunctionThatTheNodeHasNeverSeen) {
    EXPECT_EQ(as<long>(call("count").data), 1);
    EXPECT_EQ(as<long>(call("count").data), 2);
    const Reply third = call("count");
    EXPECT_EQ(as<long>(third.data), 3);
    EXPECT_EQ(third.node, 0U);
    EXPECT_EQ(third.hops, 0U);
}

TEST_P(Calls, TheSecondFrameIsSmall) {
    (void)call("echo", "12345678");
    const auto code = peer_->counters().code_bytes_sent;
    EXPECT_GT(code, 0U);
    (void)call("echo", "12345678");
    EXPECT_EQ(peer_->counters().code_bytes_sent, code);
    EXPECT_LE(peer_->counters().frame_bytes_last + 16, 64U);  // 16: the header of a message lane's active message
}

TEST_P(Calls, CarryPayloadsOfEverySize) {
    for (const std::size_t size : {0UL, 1UL, 31UL, 32UL, 33UL, 64UL, 1000UL, 65536UL, Peer::payload_bytes_max(),
                                   Peer::payload_bytes_max() + 1, 1'000'001UL, Peer::message_bytes_max()}) {
        std::string payload(size, '\0');
        std::iota(payload.begin(), payload.end(), static_cast<char>(size));
        EXPECT_EQ(text(call("echo", payload).data), payload) << size;
    }
}

TEST_P(Calls, KeepTheirPayloadAligned) {
    for (const std::string_view payload :
         {"", "x", "a payload that is longer than one line of the mailbox takes, by some bytes"})
        EXPECT_EQ(as<char>(call("aligned", payload).data), 1);
}

TEST_P(Calls, ReturningWithoutAnEndIsAnEmptyReply) {
    EXPECT_TRUE(call("nothing").data.empty());
}

TEST_P(Calls, EndOnce) {
    EXPECT_EQ(text(call("end_twice").data), "first");
}

TEST_P(Calls, FailWithTheFunctionsOwnWords) {
    try {
        (void)call("complain", "this");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::failed);
        EXPECT_STREQ(error.what(), "no luck with this");
    }
    const Entry silent = Package::open(package("silent.c")).entry("fail_without_a_word");
    for (const std::string_view payload : {"", "x"}) {
        const Error error = error_of([&] { (void)peer_->call(silent, bytes(payload)).get(); });
        EXPECT_EQ(error.code(), ErrorCode::failed);
        EXPECT_STREQ(error.what(), "the function failed and did not say why");
    }
}

TEST_P(Calls, ManyInFlightAllComeBack) {
    std::vector<RawCall> calls;
    for (int i = 0; i < 3000; ++i) calls.push_back(peer_->call(package_->entry("echo"), bytes(std::to_string(i))));
    for (int i = 0; i < 3000; ++i) EXPECT_EQ(text(calls[static_cast<std::size_t>(i)].get()), std::to_string(i));
}

TEST_P(Calls, MoreThanTheMailboxHoldsWait) {
    const std::string payload(100'000, 'p');
    std::vector<RawCall> calls;
    for (int i = 0; i < 60; ++i) calls.push_back(peer_->call(package_->entry("echo"), bytes(payload)));
    for (RawCall& call : calls) EXPECT_EQ(call.get().size(), payload.size());
}

TEST_P(Calls, PostsRunAndCallsFromOnePeerStartInTheirOrder) {
    constexpr long kPosts = 1000, kThreads = 4;
    for (long i = 0; i < kPosts; ++i) peer_->post(package_->entry("count"));
    long calls = 1, counted = as<long>(call("count").data);
    // On a machine that stops threads some that have started may not have counted yet, one for each thread beside this call's.
    EXPECT_GT(counted, kPosts + calls - kThreads);
    EXPECT_TRUE(soon([&] {
        if (counted != kPosts + calls) counted = as<long>(call("count").data), ++calls;
        return counted == kPosts + calls;
    })) << counted
        << " of " << kPosts + calls;
}

TEST_P(Calls, ThatAreDroppedDoNotDisturbOthers) {
    for (int i = 0; i < 50; ++i) (void)peer_->call(package_->entry("echo"), bytes("dropped"));
    EXPECT_EQ(text(call("echo", "kept").data), "kept");
}

TEST_P(Calls, CanBeTestedAndAwaitedForATime) {
    const unsigned ms = 80;
    RawCall slow = peer_->call(package_->entry("nap"), std::as_bytes(std::span(&ms, 1)));
    EXPECT_FALSE(slow.done());
    EXPECT_FALSE(slow.wait_for(std::chrono::milliseconds(5)));
    EXPECT_TRUE(slow.wait_for(std::chrono::seconds(10)));
    EXPECT_TRUE(slow.done());
    EXPECT_EQ(as<unsigned>(slow.get()), ms);
}

TEST_P(Calls, APayloadOverTheLimitIsRefusedByName) {
    try {
        (void)call("echo", std::string(Peer::message_bytes_max() + 1, 'x'));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid);
        EXPECT_NE(std::string(error.what()).find("over the limit of 33554432"), std::string::npos) << error.what();
    }
    EXPECT_EQ(text(call("echo", "still here").data), "still here");
}

TEST_P(Calls, AnIdleNodeSleepsAndIsWoken) {
    (void)call("echo");
    for (int i = 0; i < 20; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_EQ(text(call("echo", "wake up").data), "wake up");
    }
}

TEST_P(Calls, FromAProgramWhoseNodeHasAThreadOfItsOwn) {
    NodeOptions options = options_;
    options.own_thread = true;
    Node node(started(options));
    const Peer peer = node.connect(server_->address());
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 100; ++i) {
                const std::string payload = std::to_string(t * 1000 + i);
                if (text(peer.call(package_->entry("echo"), bytes(payload)).get()) == payload) ++right;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 400);
}

TEST_P(Calls, ToANodeInThisProgramReachItsHostObject) {
    int answer = 42;
    const Node host = node_with(&answer);
    const Peer peer = node_->connect(host.address());
    EXPECT_EQ(as<int>(peer.call(package_->entry("host")).get()), 42);
    EXPECT_EQ(error_of([&] { (void)call("host"); }).code(), ErrorCode::failed);  // the other one registered nothing
}

// The library keeps those who wait in a static of an inline function, which is one for the whole process.
TEST_P(Calls, WhatAPackageWaitsForTheProgramCanNotify) {
    std::atomic<int> word = 0;
    const Node host = node_with(&word);
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        word = 0;
        NodeOptions sends;
        sends.forms = forms;
        sends.fabric = GetParam();
        Node caller(started(sends));
        RawCall waits =
            caller.connect(host.address()).call(Package::open(package("waits_for_word.cpp")).entry("waits"));
        EXPECT_TRUE(soon([&] { return word == 1; })) << "it is about to wait";
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than it spins
        word = 2;
        word.notify_all();
        ASSERT_TRUE(waits.wait_for(std::chrono::seconds(10))) << "it was not woken";
        EXPECT_EQ(as<int>(waits.get()), 2);
    }
}

TEST_P(Calls, ConnectingTwiceGivesTheSameLink) {
    const Peer again = node_->connect(server_->address());
    (void)again.call(package_->entry("echo")).get();
    EXPECT_EQ(again.counters().frames_sent, peer_->counters().frames_sent);
}

ROVE_ON_FABRICS(Calls);

}  // namespace
}  // namespace rove::test
