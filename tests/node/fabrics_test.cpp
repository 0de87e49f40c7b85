// The libraries that a node loads and the addresses on which it listens, by the fabric that it was started with.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "bytes.hpp"
#include "process.hpp"
#include "rove/rove.hpp"

namespace rove::test {
namespace {

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

bool has_ucx(int pid) {
    return read_file("/proc/" + std::to_string(pid) + "/maps").find("/libuc") != std::string::npos;
}

// TCP sockets of that process on which it listens (state 0A).
unsigned listening_tcp_sockets(int pid) {
    std::set<std::string> own;
    for (const auto& each : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
        std::error_code gone;
        const std::string target = std::filesystem::read_symlink(each.path(), gone).string();
        if (target.starts_with("socket:[")) own.insert(target.substr(8, target.size() - 9));
    }
    unsigned count = 0;
    for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
        std::istringstream lines(read_file(table));
        for (std::string line; std::getline(lines, line);) {
            std::istringstream fields(line);
            std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
            fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
            count += state == "0A" && own.contains(inode) ? 1 : 0;
        }
    }
    return count;
}

std::string unix_address() {
    return "unix:" + (scratch() / "fabrics").string();
}

// UCX's transports write where a message says: a node that was not told to trust everybody must not have them.
TEST(PlainNode, HasNoUcxAndNoPortButItsOwn) {
    const NodeProcess on_unix({}, unix_address());
    const NodeProcess on_tcp;
    NodeOptions options;
    options.own_thread = false;
    Node client(options);
    for (const NodeProcess* node : {&on_unix, &on_tcp}) {
        const Peer peer = client.connect(node->address());
        EXPECT_EQ("direct", peer.lane());
        const Package basics = Package::open(package("basics.c"));
        EXPECT_EQ("hello", text(peer.call(basics.entry("echo"), bytes("hello")).get()));
        EXPECT_FALSE(has_ucx(node->pid())) << node->address();
    }
    EXPECT_EQ(0U, listening_tcp_sockets(on_unix.pid()));
    EXPECT_EQ(1U, listening_tcp_sockets(on_tcp.pid()));
    EXPECT_FALSE(has_ucx(getpid()));
}

TEST(UcxNode, IsOneThatWasAskedForByName) {
    const NodeProcess node({"--fabric", "ucx"}, unix_address());
    EXPECT_TRUE(has_ucx(node.pid()));
    const std::string basics = package("basics.c");
    const Ran ran =
        run({rove(), "call", node.address(), basics + ":echo", "--fabric", "ucx", "--payload-text", "hello"});
    EXPECT_EQ(0, ran.status) << ran.err;
    EXPECT_EQ("hello\n", ran.out);
}

TEST(UcxNode, IsForTrustedNetworksAndTheHelpSaysSo) {
    for (const char* command : {"node", "call"}) {
        const Ran ran = run({rove(), command, "--help"});
        EXPECT_NE(std::string::npos, ran.out.find("ucx")) << ran.out;
        EXPECT_NE(std::string::npos, ran.out.find("trusted")) << ran.out;
    }
}

}  // namespace
}  // namespace rove::test
