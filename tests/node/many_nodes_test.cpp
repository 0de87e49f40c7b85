// More nodes than cores: everybody gets on. And functions that run long beside functions that do not. No speed is asked for,
// only that nothing takes as long as it would if nodes or functions waited for one another; `rove bench` has the figures.
#include <gtest/gtest.h>

#include <algorithm>
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

// The rule of the thread contract with figures to look at: RecordProperty, no threshold but one that catches a queue behind the
// long function.
TEST(ManyNodes, OthersDoNotWaitForALongFunction) {
    (void)scratch();
    const Package basics = Package::open(package("basics.c"));
    NodeProcess node;
    std::atomic<bool> stop = false;
    std::thread slow([&] {
        NodeOptions options;
        options.own_thread = false;
        Node client(options);
        const Peer peer = client.connect(node.address());
        for (const unsigned ms = 10; !stop;) (void)peer.call(basics.entry("nap"), bytes_of(ms)).get();
    });
    NodeOptions options;
    options.own_thread = false;
    Node client(options);
    const Peer peer = client.connect(node.address());
    std::vector<double> us;
    const auto begin = Clock::now();
    while (Clock::now() - begin < std::chrono::seconds(1)) {
        const auto then = Clock::now();
        (void)peer.call(basics.entry("count")).get();
        us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - then).count());
    }
    stop = true;
    slow.join();
    std::ranges::sort(us);
    RecordProperty("p50_us", std::to_string(us[us.size() / 2]));
    RecordProperty("p99_us", std::to_string(us[us.size() * 99 / 100]));
    std::printf("calls %zu, p50 %.2f us, p99 %.2f us, p99.9 %.2f us, max %.0f us\n", us.size(), us[us.size() / 2],
                us[us.size() * 99 / 100], us[us.size() * 999 / 1000], us.back());
    EXPECT_GT(us.size(), 1000U);  // one at a time behind the naps there would be 100
}

}  // namespace
}  // namespace rove::test
