// Several nodes: joining, forwarding, posting, and code that finds its way to nodes that nobody sent it to.
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>
#include <thread>

#include "../api/error_of.hpp"
#include "bytes.hpp"
#include "process.hpp"
#include "rove/rove.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

class Many : public testing::TestWithParam<const char*> {
protected:
    void start(std::size_t count, std::vector<std::string> options = {}) {
        (void)scratch();
        options.insert(options.end(), {"--fabric", GetParam()});
        for (std::size_t i = 0; i < count; ++i) {
            std::vector<std::string> all = options;
            if (i > 0)
                all.insert(all.end(),
                           {"--join", nodes_[(i - 1) / 2].address()});  // not always the first: some are sent on
            nodes_.emplace_back(all);
        }
        NodeOptions client;
        client.own_thread = false;
        node_.emplace(client);
    }
    [[nodiscard]] std::string visit(const Peer& peer, std::string_view stops) {
        std::string payload(1, static_cast<char>(stops.size()));
        payload += stops;
        payload += '.';
        const std::string path = text(peer.call(basics_.entry("visit"), bytes(payload)).get());
        return path.substr(1);
    }
    std::vector<NodeProcess> nodes_;
    std::optional<Node> node_;
    Package basics_ = Package::open(package("basics.c"));
};

using namespace std::string_literals;

TEST_P(Many, NodesThatJoinGetDenseIdsAndKnowEachOther) {
    start(4);
    for (std::uint32_t i = 0; i < 4; ++i) {
        const Peer peer = node_->connect(nodes_[i].address());
        EXPECT_EQ(peer.node(), i);
        struct Facts {
            std::uint32_t node, origin, count;
        };
        const auto facts = as<Facts>(peer.call(basics_.entry("where")).get());
        EXPECT_EQ(facts.node, i);
        EXPECT_EQ(facts.count, 4U);
        EXPECT_EQ(facts.origin >> 31U, 1U) << "a client is no node";
    }
}

TEST_P(Many, AFunctionSendsItselfOnThroughNodesThatWereNotSentIt) {
    start(3);
    const Peer peer = node_->connect(nodes_[0].address());
    const Reply reply = peer.call(basics_.entry("visit"), bytes("\x02\x01\x02."s)).reply();
    EXPECT_EQ(text(reply.data), ".\x00\x01\x02"s);
    EXPECT_EQ(reply.node, 2U);
    EXPECT_EQ(reply.hops, 2U);
    const auto code = peer.counters().code_bytes_sent;
    EXPECT_EQ(visit(peer, "\x01\x02\x01\x02"s), "\x00\x01\x02\x01\x02"s);
    EXPECT_EQ(visit(peer, "\x00\x00\x01\x00"s), "\x00\x00\x00\x01\x00"s)
        << "a node is a stop like any other when it is oneself";
    EXPECT_EQ(peer.counters().code_bytes_sent, code) << "the client was asked again";
}

TEST_P(Many, CodeThatWasEvictedOnTheWayIsFetchedFromTheOrigin) {
    start(3, {"--code-budget", "0"});
    const Peer peer = node_->connect(nodes_[0].address());
    for (int i = 0; i < 20; ++i) ASSERT_EQ(visit(peer, "\x01\x02\x01\x00\x02"s), "\x00\x01\x02\x01\x00\x02"s) << i;
}

TEST_P(Many, PostsReachOtherNodes) {
    start(2);
    const Peer first = node_->connect(nodes_[0].address()), second = node_->connect(nodes_[1].address());
    EXPECT_EQ(as<long>(first.call(basics_.entry("count")).get()), 1);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(as<int>(first.call(basics_.entry("post_count"), bytes("\x01"s)).get()), 0);
    long seen = 0;
    for (int i = 0; i < 500 && seen < 11; ++i) {  // one-way: nobody tells when it has run
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        seen = as<long>(second.call(basics_.entry("count")).get()) - i;
    }
    EXPECT_EQ(seen, 11);
    EXPECT_NE(as<int>(first.call(basics_.entry("post_count"), bytes("\x09"s)).get()), 0) << "there is no node 9";
}

TEST_P(Many, FindTellsWhatANodeKnows) {
    start(1);
    const Peer peer = node_->connect(nodes_[0].address());
    const auto find = [&](const std::string& name) {
        return as<int>(peer.call(basics_.entry("find"), bytes(name)).get());
    };
    EXPECT_EQ(find("basics:echo"), 0);
    EXPECT_EQ(find(basics_.entry("echo").id()), 0);
    EXPECT_NE(find("basics:nonsense"), 0);
    EXPECT_NE(find("00000000000000000000000000000000"), 0);
    EXPECT_NE(find("nonsense"), 0);
}

TEST_P(Many, ForwardingToNowhereIsTheFunctionsError) {
    start(2);
    const Peer peer = node_->connect(nodes_[0].address());
    const auto said = [&](const std::string& to) { return error_of([&] { (void)visit(peer, to); }).message(); };
    EXPECT_EQ(said("\x07"s), "forward to 7: error 1");
    nodes_[1].kill_now();
    EXPECT_TRUE(soon([&] { return said("\x01"s) == "forward to 1: error 5"; })) << said("\x01"s);
}

// What came in parts, or was named in two ways, does not go on as if it did.
TEST_P(Many, ALargeCallIsSentOnAsASmallOne) {
    start(2);
    const Peer peer = node_->connect(nodes_[0].address());
    for (const char node : {'\0', '\1'}) {
        const std::string payload(300'000, node);
        const std::vector<std::byte> reply = peer.call(basics_.entry("shorten"), bytes(payload)).get();
        ASSERT_EQ(reply.size(), 1U);
        EXPECT_EQ(std::to_integer<int>(reply[0]), 16);
    }
    EXPECT_EQ(visit(peer, "\x01"s), "\x00\x01"s);  // the links are whole
}

TEST_P(Many, ACallThatWasSentOnFailsWhenItsNodeDies) {
    start(3);
    const Peer peer = node_->connect(nodes_[0].address());
    EXPECT_EQ(visit(peer, "\x01"s), "\x00\x01"s);
    nodes_[1].stop();
    RawCall call = peer.call(basics_.entry("visit"), bytes("\x01\x01."s));
    EXPECT_FALSE(call.wait_for(std::chrono::milliseconds(100)));
    nodes_[1].kill_now();
    const auto killed = std::chrono::steady_clock::now();  // NOLINT(clang-analyzer-deadcode.DeadStores): get throws
    try {
        FAIL() << call.get().size() << " bytes were replied";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.what();
    }
    // By the connection's end, and not by one of the time limits of 5 s.
    EXPECT_LT(std::chrono::steady_clock::now() - killed, std::chrono::seconds(4));
    EXPECT_EQ(visit(peer, "\x02"s), "\x00\x02"s);
}

TEST_P(Many, AMemberThatComesBackHasItsOldId) {
    start(3);
    const std::string address = nodes_[1].address();
    const Peer peer = node_->connect(nodes_[0].address());
    EXPECT_EQ(visit(peer, "\x01\x02"s), "\x00\x01\x02"s);
    nodes_[1].kill_now();
    nodes_[1] = NodeProcess({"--fabric", GetParam(), "--join", nodes_[2].address()}, address);
    EXPECT_EQ(visit(peer, "\x01\x02\x01"s), "\x00\x01\x02\x01"s);
    const Peer direct = node_->connect(address);
    EXPECT_EQ(direct.node(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, Many, testing::Values("shm", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rove::test
