// Failures, and the messages that users get. Nodes here are the command's, so they are processes of their own; what happens to a call when one of
// them dies is the same on each fabric that joins processes (NodesThatDie), and the others end before there is a lane.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "../api/nodes.hpp"
#include "api/access.hpp"
#include "bytes.hpp"
#include "control/cookie.hpp"
#include "node/core.hpp"
#include "process.hpp"
#include "rove/rove.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

NodeOptions client() {
    (void)scratch();
    NodeOptions options;
    options.own_thread = false;
    return options;
}

Ran call(const std::string& address, const std::string& function, std::vector<std::string> more = {}) {
    std::vector<std::string> command{rove(), "call", address, function};
    command.insert(command.end(), more.begin(), more.end());
    return run(command);
}

TEST(Command, CallPrintsTheReply) {
    NodeProcess server;
    const std::string basics = package("basics.c");
    Ran ran = call(server.address(), basics + ":echo", {"--payload-text", "hello"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "hello\n");
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(call(server.address(), basics + ":echo", {"--payload-hex", "00ff"}).out, "00ff\n");
    const std::string file = (scratch() / "payload").string();
    std::ofstream(file) << "from a file";
    EXPECT_EQ(call(server.address(), basics + ":echo", {"--payload-file", file}).out, "from a file\n");
    ran = call(server.address(), basics + ":echo", {"--payload-text", "12345678", "--repeat", "5", "--json"});
    const auto json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(json.at("reply_hex"), "3132333435363738");
    EXPECT_EQ(json.at("node"), 0);
    EXPECT_EQ(json.at("calls"), 5);
    EXPECT_TRUE(json.at("first").at("ran") == "image" || json.at("first").at("ran") == "bitcode");
    EXPECT_GT(json.at("first").at("latency_us"), 0);
    EXPECT_TRUE(json.at("last").contains("ran"));
    EXPECT_GT(json.at("latency_us_median"), 0);
    EXPECT_LE(json.at("frame_bytes_last"), 64);
}

TEST(Command, WrongUsageIsStatus2AndErrorsAreStatus1) {
    NodeProcess server;
    const std::string basics = package("basics.c");
    for (const auto& command :
         std::vector<std::vector<std::string>>{{"call"},
                                               {"nonsense"},
                                               {},
                                               {"node"},
                                               {"call", server.address(), "nothing"},
                                               {"call", server.address(), basics + ":echo", "--payload-hex", "abc"},
                                               {"call", server.address(), basics + ":echo", "--repeat", "0"},
                                               {"node", "--listen", "127.0.0.1:0", "--fabric", "pigeon"}}) {
        std::vector<std::string> all{rove()};
        all.insert(all.end(), command.begin(), command.end());
        const Ran ran = run(all);
        EXPECT_EQ(ran.status, 2) << ran.err;
        EXPECT_NE(ran.err, "");
        EXPECT_EQ(ran.out, "");
    }
    const auto is_told = [](const std::vector<std::string>& flags, const std::string& words) {
        std::vector<std::string> all{rove()};
        all.insert(all.end(), flags.begin(), flags.end());
        const Ran ran = run(all);
        EXPECT_EQ(ran.status, 2);
        EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
    };
    is_told({"nonsense"}, "there is no command 'nonsense'");
    is_told({"node", "--listen", "127.0.0.1:0", "--fabric", "pigeon"}, "'pigeon' is none of best, shm, tcp, ucx");
    is_told({"node", "--listen", "127.0.0.1:0", "--waiting", "long"}, "'long' is none of balanced, frugal, latency");
    is_told({"node", "--listen", "127.0.0.1:0", "--grace", "nan"}, "nan is no number of seconds");
    is_told({"call", "127.0.0.1:1", "x.rove:f", "--timeout", "nan"}, "nan is no number of seconds");
    is_told({"functions", "127.0.0.1:1", "--timeout", "nan"}, "nan is no number of seconds");
    is_told({"node", "--listen", "127.0.0.1:0", "--code-budget", "-1"}, "--code-budget");
    is_told({"call", "unix:/nowhere", "a.rove:f", "--payload-file", "/no/such"}, "/no/such");
    const auto says = [](const Ran& ran, const std::string& words) {
        EXPECT_EQ(ran.status, 1);
        EXPECT_EQ(ran.out, "");
        EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
    };
    says(call(server.address(), basics + ":cuont"), "no entry 'cuont'; it has: count, echo");
    says(call(server.address(), basics + ":complain", {"--payload-text", "me"}), "no luck with me");
    says(call(server.address(), "/no/such.rove:x"), "cannot read package /no/such.rove");
    says(call("127.0.0.1:1", basics + ":echo"), "no node answers at 127.0.0.1:1");
    says(call("8.8.8.8:80", basics + ":echo"), "not on this machine's loopback");
    says(call("nonsense", basics + ":echo"), "write host:port, [v6]:port or unix:PATH");
    says(run({rove(), "node", "--listen", "0.0.0.0:0"}), "not on this machine's loopback");
    says(run({rove(), "node", "--listen", server.address()}), "another process does; choose another port");
    says(run({rove(), "node", "--listen", "127.0.0.1:0", "--join", "127.0.0.1:1"}), "no node answers at 127.0.0.1:1");
    says(run({rove(), "inspect", rove()}), "not a Rove package");
}

TEST(Command, BuildTakesItsOptionsInAnyOrder) {
    const std::string source = (source_folder() / "tests/packages/plain.c").string();
    const std::string output = (scratch() / "any-order.rove").string();
    const Ran ran = run({rove(), "build", "-DANSWER=5", "--target", "x86_64-linux-gnu", "--dep", "libm.so.6",
                         "--flag=-O1", source, "-o", output});
    EXPECT_EQ(ran.status, 0) << ran.err;
    const auto json = nlohmann::json::parse(run({rove(), "inspect", output, "--json"}).out);
    EXPECT_EQ(json.at("name"), "plain");
    EXPECT_EQ(json.at("targets").size(), 1U);
    EXPECT_EQ(json.at("dependencies"), nlohmann::json::array({"libm.so.6"}));
}

TEST(Command, AlteredPackagesAreRefused) {
    NodeProcess server;
    std::ifstream stream(package("basics.c"), std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(stream)), {});
    const std::string path = (scratch() / "altered.rove").string();
    std::ofstream(path, std::ios::binary) << whole.substr(0, whole.size() / 2);
    Ran ran = call(server.address(), path + ":echo");
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.err.find("truncated"), std::string::npos) << ran.err;
    std::string altered = whole;
    altered[whole.size() - 10] ^= 1;
    std::ofstream(path, std::ios::binary) << altered;
    ran = call(server.address(), path + ":echo");
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.err.find("was altered"), std::string::npos) << ran.err;
}

TEST(Command, EndsCleanlyOnSigterm) {
    NodeProcess server;
    Node node(client());
    const Peer peer = node.connect(server.address());
    const Package basics = Package::open(package("basics.c"));
    (void)peer.call(basics.entry("echo")).get();
    const unsigned ms = 300;
    RawCall running = peer.call(basics.entry("nap"), std::as_bytes(std::span(&ms, 1)));
    EXPECT_FALSE(running.wait_for(std::chrono::milliseconds(100)));
    server.signal(SIGTERM);
    EXPECT_EQ(as<unsigned>(running.get()), ms) << "what runs is finished";
    EXPECT_EQ(server.wait(), 0);
}

TEST(Command, EndsOnSigtermAlthoughAFunctionDoesNotReturn) {
    const Package package_of_it = Package::open(package("stuck.c"));
    for (const char* threads : {"1", "4"}) {
        NodeProcess server({"--grace", "1", "--threads", threads});
        Node node(client());
        const Peer peer = node.connect(server.address());
        RawCall stuck = peer.call(package_of_it.entry("stuck"));
        EXPECT_FALSE(stuck.wait_for(std::chrono::milliseconds(200)));
        server.signal(SIGTERM);
        EXPECT_EQ(server.wait(), 0);
        try {
            (void)stuck.get();
            ADD_FAILURE() << "it has returned";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.what();
        }
    }
}

// Without shut_down(), when the last reference to it is dropped.
TEST(Freeing, LeavesANodeToAFunctionThatDoesNotReturn) {
    auto core = value_or_throw(NodeCore::create({.listen = "unix:" + (scratch() / "freed.sock").string(),
                                                 .log = "off",
                                                 .grace = std::chrono::milliseconds(100)}));
    Node node(client());
    const Peer peer = node.connect(core->address());
    RawCall stuck = peer.call(Package::open(package("stuck.c")).entry("stuck"));
    EXPECT_FALSE(stuck.wait_for(std::chrono::milliseconds(200)));
    const std::weak_ptr<NodeCore> freed = std::exchange(core, nullptr);
    EXPECT_TRUE(freed.expired());
    try {
        (void)stuck.get();
        ADD_FAILURE() << "it has returned";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.what();
    }
}

TEST(Command, ASecondSignalEndsItAtOnce) {
    NodeProcess server({"--grace", "600"});
    Node node(client());
    const Peer peer = node.connect(server.address());
    RawCall stuck = peer.call(Package::open(package("stuck.c")).entry("stuck"));
    EXPECT_FALSE(stuck.wait_for(std::chrono::milliseconds(200)));
    server.signal(SIGTERM);
    EXPECT_FALSE(stuck.wait_for(std::chrono::milliseconds(500)));
    server.signal(SIGINT);
    EXPECT_EQ(server.wait(), 128 + SIGINT);
}

TEST(Command, ListensOnAUnixSocketAndOnIpv6) {
    const std::string path = "unix:" + (scratch() / "socket").string();
    {
        NodeProcess server({}, path);
        EXPECT_EQ(server.address(), path);
        EXPECT_EQ(call(path, package("basics.c") + ":echo", {"--payload-text", "unix"}).out, "unix\n");
        EXPECT_EQ(run({rove(), "node", "--listen", path}).status, 1) << "two nodes on one socket";
        server.kill_now();  // leaves its socket file behind
    }
    NodeProcess server({}, path);
    EXPECT_EQ(call(path, package("basics.c") + ":echo", {"--payload-text", "again"}).out, "again\n");
    NodeProcess six({}, "[::1]:0");
    EXPECT_TRUE(six.address().starts_with("[::1]:"));
    EXPECT_EQ(call(six.address(), package("basics.c") + ":echo", {"--payload-text", "six"}).out, "six\n");
}

class NodesThatDie : public testing::TestWithParam<TestFabric> {
protected:
    static NodeOptions client() {
        NodeOptions options = test::client();
        options.fabric = GetParam();
        return options;
    }
};
ROVE_ON_FABRICS_OF_PROCESSES(NodesThatDie);

TEST_P(NodesThatDie, ANodeThatDiesDuringACallIsADisconnectedCallAndTheClientLivesOn) {
    NodeProcess server, other;
    Node node(client());
    const Peer peer = node.connect(server.address());
    const Package basics = Package::open(package("basics.c"));
    (void)peer.call(basics.entry("echo")).get();
    RawCall dying = peer.call(basics.entry("die"));
    const auto begin = std::chrono::steady_clock::now();  // NOLINT(clang-analyzer-deadcode.DeadStores): get throws
    try {
        (void)dying.get();
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::disconnected);
        EXPECT_NE(std::string(error.what()).find("node 0 at " + server.address() + " was lost during the call"),
                  std::string::npos)
            << error.what();
    }
    // By the connection's end, and not by one of the time limits of 5 s.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
    EXPECT_EQ(text(node.connect(other.address()).call(basics.entry("echo"), bytes("alive")).get()), "alive");
    EXPECT_EQ(error_of([&] { (void)peer.call(basics.entry("echo")); }).code(), ErrorCode::disconnected);
}

TEST_P(NodesThatDie, ANodeThatWasKilledAndStartedAgainAnswersTheNextCall) {
    for (const bool own_thread : {false, true}) {
        NodeProcess server;
        const std::string address = server.address();
        NodeOptions options = client();
        options.own_thread = own_thread;
        Node node(options);
        const Peer peer = node.connect(address);
        const Package basics = Package::open(package("basics.c"));
        EXPECT_EQ(as<long>(peer.call(basics.entry("count")).get()), 1);
        EXPECT_EQ(as<long>(peer.call(basics.entry("count")).get()), 2);
        server.kill_now();
        server = NodeProcess({}, address);
        EXPECT_EQ(as<long>(peer.call(basics.entry("count")).get()), 1) << "the code was sent again, with fresh statics";
    }
}

TEST(DependableProcesses, TimeLimitsBoundMeetingAgain) {
    NodeProcess server;
    NodeOptions calling;
    (void)scratch();
    calling.log = "off";
    Node client(calling);
    const Peer link = client.connect(server.address());
    (void)link.ping().get();
    server.stop();
    const std::shared_ptr<PeerState> there = detail::Inside::state(link);
    detail::Inside::core(link)->first_engine().peers().lose(there, there->meeting(),
                                                            Error(ErrorCode::disconnected, "cut by the test"));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(error_of([&] { (void)link.allocate<int>(within(std::chrono::milliseconds(100)), 1).get(); }).code(),
              ErrorCode::timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3))
        << "as long as a meeting may take, and not as long as the call";
    server.signal(SIGCONT);
    EXPECT_TRUE(soon([&] {
        try {
            return link.ping().get().empty();
        } catch (const Error&) {
            return false;
        }
    }));
}

TEST(Trouble, GarbageOnTheControlConnectionEndsItAndHurtsNobody) {
    const std::string path = (scratch() / "garbage").string();
    NodeProcess server({}, "unix:" + path);
    Node node(client());
    const Peer peer = node.connect(server.address());
    const Package basics = Package::open(package("basics.c"));
    const std::vector<std::string> garbage{std::string("\xff\xff\xff\xff too long", 13),
                                           std::string("\x05\0\0\0hello", 9), std::string("\x05\0\0\0he", 6),
                                           std::string("\x01\0\0\0\xa0", 5), std::string(5000, '\0')};
    for (const std::string& bytes_sent : garbage) {
        const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
        ASSERT_GE(socket, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        ASSERT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        ASSERT_GT(::send(socket, bytes_sent.data(), bytes_sent.size(), MSG_NOSIGNAL), 0);
        timeval limit{5, 0};
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        char answer[4096];
        ssize_t count = 0;
        while ((count = ::recv(socket, answer, sizeof answer, 0)) > 0) {
        }
        EXPECT_TRUE(count == 0 || errno == ECONNRESET) << "the connection was not ended";
        ::close(socket);
        EXPECT_EQ(text(peer.call(basics.entry("echo"), bytes("fine")).get()), "fine");
    }
    const std::string failed = "a meeting with pid " + std::to_string(getpid()) + " failed: ";
    EXPECT_NE(server.log().find(failed), std::string::npos) << server.log();
    EXPECT_NE(server.log().find(failed + "it did not answer in time"), std::string::npos) << server.log();
}

TEST(Trouble, MembersThatMeetTwiceAreNoFailure) {
    const NodeProcess first;
    NodeOptions joining{.listen = "127.0.0.1:0", .join = first.address()};
    Node second(joining);
    const NodeProcess third({"--join", first.address()});  // which meets the second
    ASSERT_TRUE(soon([&second] { return second.node_count() == 3; }));
    EXPECT_EQ(second.connect(third.address()).node(), 2U);
    EXPECT_EQ(third.log().find("failed"), std::string::npos) << third.log();
}

// Another user of this machine must not run code as us, whichever way they come.
TEST(Trouble, AnotherLocalUserIsRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    const std::string path = (scratch() / "mine").string();
    NodeProcess by_tcp, by_socket({}, "unix:" + path);
    const std::string basics = package("basics.c");
    std::filesystem::permissions(scratch(), std::filesystem::perms::all);
    std::filesystem::permissions(path, std::filesystem::perms::all);  // even where the file lets them in
    const std::string copy = (scratch() / "their-cookie").string();
    const std::string theirs = (scratch() / "rove").string();  // the build's may be where only root can go
    std::filesystem::copy_file(rove(), theirs);
    std::filesystem::permissions(theirs, std::filesystem::perms(0755));  // whatever the umask of who built it
    for (const std::string& address : {by_tcp.address(), by_socket.address()}) {
        const Ran ran =
            run({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "ROVE_COOKIE=" + copy, theirs,
                 "call", address, basics + ":echo", "--payload-text", "let me in"});
        EXPECT_EQ(ran.status, 1);
        EXPECT_EQ(ran.out, "");
        EXPECT_NE(ran.err.find("another user"), std::string::npos) << ran.err;
    }
    // And a cookie of ours that others may read is not used.
    const std::string open_cookie = (scratch() / "open-cookie").string();
    std::ofstream(open_cookie) << std::string(32, 'c');
    std::filesystem::permissions(open_cookie, std::filesystem::perms(0644));
    const Ran ran = run({rove(), "node", "--listen", "127.0.0.1:0", "--cookie", open_cookie});
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.err.find("readable by no one else"), std::string::npos) << ran.err;
}

TEST(Trouble, ACookieThatIsNoFileIsRefused) {
    const std::string pipe = (scratch() / "pipe").string();
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const Ran ran = run({"timeout", "20", rove(), "node", "--listen", "127.0.0.1:0", "--cookie", pipe});
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.err.find("pipe is no regular file"), std::string::npos) << ran.err;
}

// What is there is not the node's to change: a cookie may be named in /tmp.
TEST(Trouble, OnlyAFolderThatIsMadeForTheCookieIsClosedToOthers) {
    using std::filesystem::perms;
    const std::filesystem::path there = scratch() / "there";
    std::filesystem::create_directory(there);
    std::filesystem::permissions(there, perms(0777) | perms::sticky_bit);
    const NodeProcess node({"--cookie", there / "cookie"});
    EXPECT_TRUE(std::filesystem::exists(there / "cookie"));
    EXPECT_EQ(std::filesystem::status(there).permissions(), perms(0777) | perms::sticky_bit);
    // By default it has one of its own.
    ASSERT_EQ(setenv("XDG_CONFIG_HOME", scratch().c_str(), 1), 0);
    const auto made = control::read_or_make_cookie(scratch() / "rove" / "cookie");
    ASSERT_EQ(unsetenv("XDG_CONFIG_HOME"), 0);
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_EQ(std::filesystem::status(scratch() / "rove").permissions(), perms(0700));
}

TEST(Trouble, TwoEndsWithDifferentFabricsSaySo) {
    NodeProcess server({"--fabric", "shm"});
    NodeOptions options = client();
    options.fabric = FabricChoice::tcp;
    Node node(options);
    try {
        (void)node.connect(server.address());
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_NE(std::string(error.what()).find("no transport reaches"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace rove::test
