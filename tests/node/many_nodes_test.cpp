// More nodes than cores: everybody gets on. And functions that run long beside functions that do not. No speed is asked for,
// only that nobody waits for what need not be waited for; `rove bench` has the figures.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "bytes.hpp"
#include "process.hpp"
#include "rove/rove.hpp"

namespace rove::test {
namespace {

using Clock = std::chrono::steady_clock;

// Each of eight nodes is called by a client of its own, a window of calls in flight.
TEST(ManyNodes, EightOnTwoCoresAllGetOn) {
    (void)scratch();
    const Package basics = Package::open(package("basics.c"));
    std::vector<NodeProcess> nodes(8);
    std::vector<std::thread> clients;
    std::atomic<long> done = 0;
    const auto begin = Clock::now();
    for (NodeProcess& node : nodes)
        clients.emplace_back([&] {
            NodeOptions options;
            options.own_thread = false;
            Node client(options);
            const Peer peer = client.connect(node.address());
            const Entry count = basics.entry("count");
            for (int round = 0; round < 200; ++round) {
                std::vector<RawCall> window;
                window.reserve(32);
                for (int i = 0; i < 32; ++i) window.push_back(peer.call(count));
                for (RawCall& call : window) done += call.get().empty() ? 0 : 1;
            }
        });
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(done, 8 * 200 * 32);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(60));
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
    const auto nap = [&](unsigned ms) { return sleeper.call(basics.entry("nap"), bytes_of(ms)); };
    for (int i = 0; i < 3; ++i) (void)nap(50).get();  // the node learns it
    RawCall long_one = nap(3000);
    (void)one.poll();
    for (int i = 0; i < 100; ++i) (void)peer.call(basics.entry("count")).get();
    EXPECT_FALSE(long_one.wait_for(std::chrono::seconds(0))) << "they waited for it";
    EXPECT_FALSE(long_one.get().empty());
}

}  // namespace
}  // namespace rove::test
