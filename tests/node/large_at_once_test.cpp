// Large payloads while other calls run, between the same two nodes: nobody waits for himself, and what is sent does not change on its way.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "../api/nodes.hpp"
#include "api/access.hpp"
#include "engine_view.hpp"
#include "node/core.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kLong = 60s;  // what none of this takes, however busy the machine is
constexpr std::size_t kLarge = 30'000'000;

std::size_t take(const std::vector<char>& bytes) {
    return bytes.size();
}
int add(int a, int b) {
    return a + b;
}

struct Pair {
    explicit Pair(unsigned threads, bool own_thread = true)
        : server(listening(threads)), node(alone(threads, own_thread)), peer(node.connect(server.address())) {}
    static NodeOptions listening(unsigned threads) {
        NodeOptions options = alone(threads, true);
        options.listen = "127.0.0.1:0";
        return options;
    }
    static NodeOptions alone(unsigned threads, bool own_thread) {
        NodeOptions options;
        options.fabric = FabricChoice::shm;
        options.log = "off";
        options.threads = threads;
        options.own_thread = own_thread;
        return options;
    }
    Node server, node;
    Peer peer;
};

// A function on top of a large payload's wait waits for one that another thread sends to the same peer.
void send_large(Here& here) {
    (void)here.caller().sync(within(kLong), fn<take>, std::vector<char>(1'000'000));
}
void by_the_server(Here& here) {
    here.caller().sync(within(kLong), fn<send_large>);
}
void around(Here& here) {
    here.caller().sync(within(kLong), fn<by_the_server>);
}
void often_around(Here& here) {
    for (int i = 0; i < 20; ++i) here.caller().sync(within(kLong), fn<around>);
}

TEST(LargeAtOnce, WhatRunsOnTopOfOneMayWaitForAnother) {
    (void)scratch();
    Pair pair(2);
    std::atomic<bool> done{false};
    std::string error;
    std::thread large([&] {
        const std::vector<char> bytes(8'000'000);
        try {
            while (!done) (void)pair.peer.sync(within(kLong), fn<take>, bytes);
        } catch (const Error& thrown) {
            error = thrown.what();
        }
    });
    for (int i = 0; i < 10; ++i) EXPECT_NO_THROW(pair.peer.sync(within(kLong), fn<often_around>)) << i;
    done = true;
    large.join();
    EXPECT_EQ(error, "");
}

// Each side has one thread, which sends, and calls lie before the payloads' parts in both mailboxes.
std::atomic<int> larges_sent{0};
void send_some(Here& here) {
    for (int i = 0; i < 3; ++i) {
        for (int small = 0; small < 300; ++small) here.caller().post(fn<add>, small, 1);
        EXPECT_EQ(here.caller().sync(within(kLong), fn<take>, std::vector<char>(kLarge)), kLarge);
    }
    ++larges_sent;
}

TEST(LargeAtOnce, BothWaysWithOneThreadEach) {
    (void)scratch();
    larges_sent = 0;
    Pair pair(1, false);
    const std::vector<char> bytes(kLarge);
    EXPECT_EQ(pair.peer.sync(within(kLong), fn<add>, 1, 1), 2);
    pair.peer.post(fn<send_some>);
    for (int i = 0; i < 3; ++i) {
        for (int small = 0; small < 300; ++small) pair.peer.post(fn<add>, small, 1);
        EXPECT_EQ(pair.peer.sync(within(kLong), fn<take>, bytes), kLarge);
    }
    EXPECT_TRUE(soon([&] {
        (void)pair.node.poll(1ms);
        return larges_sent == 1;
    }));
}

// Two threads of each side, and functions that send on top of each other's waits.
TEST(LargeAtOnce, BothWaysFromSeveralThreads) {
    (void)scratch();
    larges_sent = 0;
    Pair pair(2);
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int t = 0; t < 2; ++t)
        threads.emplace_back([&] {
            const std::vector<char> bytes(kLarge / 3);
            for (int i = 0; i < 4; ++i) {
                pair.peer.post(fn<around>);
                right += pair.peer.sync(within(kLong), fn<take>, bytes) == bytes.size() ? 1 : 0;
            }
        });
    EXPECT_NO_THROW(pair.peer.sync(within(kLong), fn<send_some>));
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 8);
    EXPECT_EQ(larges_sent, 1);
}

// Arguments are read where they lie, and the thread that sends them runs a function that changes them.
std::vector<unsigned char> values;
std::atomic<int> changes{0};
constexpr int kChanges = 40;
void change() {
    values.assign(values.size() + 1, static_cast<unsigned char>(++changes));
}
void ask_for_changes(Here& here) {
    for (int i = 0; i < kChanges; ++i) here.caller().sync(within(kLong), fn<change>);
}
std::size_t runs(const std::vector<unsigned char>& of) {
    std::size_t count = 1;
    for (std::size_t i = 1; i < of.size(); ++i) count += of[i] != of[i - 1] ? 1 : 0;
    return count;
}

std::atomic<bool> begun{false}, go_on{false};
void wait_until_told() {
    begun = true;
    while (!go_on) std::this_thread::sleep_for(1ms);
}
std::size_t own_thread() {
    return std::hash<std::thread::id>()(std::this_thread::get_id());
}

// One that runs on top of the sender's wait may take as long as it likes, and the rest of the payload would not be sent until it ends.
TEST(LargeAtOnce, CallsThatComeMeanwhileRunInOtherThreads) {
    (void)scratch();
    Node server(Pair::listening(1)), sender(Pair::listening(4)), caller(Pair::alone(4, true));
    const Peer to = sender.connect(server.address());
    const Peer back = caller.connect(sender.address());
    EXPECT_EQ(to.sync(fn<add>, 1, 2), 3);
    to.post(fn<wait_until_told>);
    ASSERT_TRUE(soon([] { return begun.load(); }));  // nobody empties the mailbox
    std::atomic<std::size_t> sends{0};
    std::thread thread([&] {
        sends = own_thread();
        EXPECT_EQ(to.sync(within(kLong), fn<take>, std::vector<char>(kLarge)), kLarge);
    });
    ASSERT_TRUE(
        soon([&] { return sends != 0 && EngineView::waits_for_room(detail::Inside::core(to)->first_engine()) == 1; }));
    std::this_thread::sleep_for(200ms);  // it has waited for so long that functions may run on top of it
    for (int i = 0; i < 50; ++i) EXPECT_NE(back.sync(within(kLong), fn<own_thread>), sends);
    go_on = true;
    thread.join();
}

TEST(LargeAtOnce, ArgumentsDoNotChangeOnTheirWay) {
    (void)scratch();
    Pair pair(2, false);
    EXPECT_EQ(pair.peer.sync(within(kLong), fn<runs>, std::vector<unsigned char>(3)), 1U);
    for (int round = 0; round < 4; ++round) {
        values.assign(kLarge, 0);
        changes = 0;
        pair.peer.post(fn<ask_for_changes>);
        EXPECT_EQ(pair.peer.sync(within(kLong), fn<runs>, values), 1U) << round;
        EXPECT_TRUE(soon([&] {
            (void)pair.node.poll(1ms);
            return changes == kChanges;
        }));
    }
}

}  // namespace
}  // namespace rove::test
