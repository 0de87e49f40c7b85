// More nodes than cores: everybody gets on. And functions that run long beside functions that do not. No speed is asked for,
// only that nobody waits for what need not be waited for; `rove bench` has the figures.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <mutex>
#include <thread>

#include "bytes.hpp"
#include "process.hpp"
#include "rove/rove.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

// Each of eight nodes is called by a client of its own, a window of calls in flight. They begin together, and none has got nowhere when
// the first is through.
TEST(ManyNodes, EightOnTwoCoresAllGetOn) {
    constexpr int kNodes = 8, kRounds = 200, kWindow = 32;
    (void)scratch();
    const Package basics = Package::open(package("basics.c"));
    std::vector<NodeProcess> nodes(kNodes);
    std::vector<std::thread> clients;
    std::barrier begin(kNodes);
    std::array<std::atomic<int>, kNodes> rounds{};
    std::once_flag first_is_through;
    int fewest = kRounds;
    std::atomic<int> wrong{0};
    for (std::size_t n = 0; n < nodes.size(); ++n)
        clients.emplace_back([&, n] {
            NodeOptions options;
            options.own_thread = false;
            Node client(options);
            const Peer peer = client.connect(nodes[n].address());
            const Entry count = basics.entry("count");
            long counted = as<long>(peer.call(count).get());
            begin.arrive_and_wait();
            for (; rounds[n] < kRounds; ++rounds[n]) {
                std::vector<RawCall> window;
                window.reserve(kWindow);
                for (int i = 0; i < kWindow; ++i) window.push_back(peer.call(count));
                long sum = 0;  // they may overlap, where the machine stops a thread
                for (RawCall& call : window) sum += as<long>(call.get());
                if (sum != kWindow * counted + kWindow * (kWindow + 1) / 2) ++wrong;
                counted += kWindow;
            }
            std::call_once(first_is_through, [&] {
                for (const std::atomic<int>& each : rounds) fewest = std::min(fewest, each.load());
            });
        });
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(fewest, 0) << "one of them got nowhere";
}

// Nodes that call one another in a ring, each a member that forwards.
TEST(ManyNodes, AChainOverEightNodesComesBack) {
    (void)scratch();
    const Package basics = Package::open(package("basics.c"));
    std::vector<NodeProcess> nodes;
    for (int i = 0; i < 8; ++i)
        nodes.emplace_back(nodes.empty() ? std::vector<std::string>{}
                                         : std::vector<std::string>{"--join", nodes.front().address()});
    NodeOptions options;
    options.own_thread = false;
    Node client(options);
    const Peer peer = client.connect(nodes.front().address());
    std::string route = {7};
    for (char stop = 1; stop < 8; ++stop) route += stop;
    for (int round = 0; round < 100; ++round) {
        const Reply reply = peer.call(basics.entry("visit"), bytes(route)).reply();
        EXPECT_EQ(text(reply.data), std::string("\0\1\2\3\4\5\6\7", 8));
        EXPECT_EQ(reply.hops, 7U);
    }
}

// The rule of the thread contract: a function that is known to run long keeps nobody waiting.
TEST(ManyNodes, OthersDoNotWaitForALongFunction) {
    (void)scratch();
    const Package basics = Package::open(package("basics.c"));
    const NodeProcess node;
    NodeOptions options;
    options.own_thread = false;
    Node one(options), other(options);
    const Peer sleeper = one.connect(node.address()), peer = other.connect(node.address());
    for (int round = 0; round < 4; ++round) {                   // by the last one the node knows that it is long
        RawCall long_one = sleeper.call(basics.entry("meet"));  // it waits for a second one
        EXPECT_TRUE(soon([&] { return one.poll(), as<bool>(peer.call(basics.entry("meeting")).get()); }));
        for (int i = 0; i < 100; ++i) (void)peer.call(basics.entry("count")).get();
        (void)peer.call(basics.entry("meet")).get();
        EXPECT_TRUE(as<bool>(long_one.get())) << "the others waited for its end";
    }
}

}  // namespace
}  // namespace rove::test
