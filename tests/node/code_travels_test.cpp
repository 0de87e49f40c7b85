// How code gets to a node, stays there, changes its tier, and goes, on every fabric.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <span>
#include <thread>
#include <tuple>
#include <vector>

#include "../api/nodes.hpp"
#include "beside_node.hpp"
#include "bytes.hpp"
#include "process.hpp"
#include "rove/rove.hpp"

namespace rove::test {
namespace {

NodeOptions client(Forms forms = Forms::both) {
    (void)scratch();
    NodeOptions options;
    options.own_thread = false;
    options.forms = forms;
    return options;
}

struct Version {
    int version, calls;
};

class CodeTravels : public testing::TestWithParam<TestFabric> {
protected:
    CodeTravels() { (void)scratch(); }  // the tests' own cookie
    // A node over the fabric that the test runs on.
    [[nodiscard]] static Node started(NodeOptions options) {
        options.fabric = GetParam();
        return GetParam().start(std::move(options));
    }
};
ROVE_ON_FABRICS(CodeTravels);

TEST_P(CodeTravels, ImageAtOnceBitcodeBehindItOneSetOfStatics) {
    const Server server(GetParam());
    Node node(started(client()));
    const Peer peer = node.connect(server.address());
    const Package basics = Package::open(package("basics.c"));
    const Reply first = peer.call(basics.entry("count")).reply();
    EXPECT_EQ(first.ran, RanAs::image);
    long calls = 1;
    Reply last = first;
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
         last.ran != RanAs::bitcode && std::chrono::steady_clock::now() < until;) {
        last = peer.call(basics.entry("count")).reply();
        ASSERT_EQ(as<long>(last.data), ++calls) << "a count was lost";
    }
    EXPECT_EQ(last.ran, RanAs::bitcode);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(as<long>(peer.call(basics.entry("count")).get()), ++calls);
}

TEST_P(CodeTravels, OneFormCanBePinned) {
    for (const auto& [forms, ran] : {std::pair{Forms::image, RanAs::image}, {Forms::bitcode, RanAs::bitcode}}) {
        const Server server(GetParam());
        Node node(started(client(forms)));
        const Peer peer = node.connect(server.address());
        const Package basics = Package::open(package("basics.c"));
        for (long i = 1; i <= 20; ++i) {
            const Reply reply = peer.call(basics.entry("count")).reply();
            EXPECT_EQ(reply.ran, ran);
            EXPECT_EQ(as<long>(reply.data), i);
        }
    }
}

TEST_P(CodeTravels, PreloadedPackagesAreResident) {
    const std::filesystem::path folder = scratch() / "preload";
    std::filesystem::create_directory(folder);
    std::filesystem::copy_file(package("basics.c"), folder / "basics.rove",
                               std::filesystem::copy_options::overwrite_existing);
    const Server server(GetParam(),
                        {{"--packages", folder.string()}, [&](NodeOptions& options) { options.packages = folder; }});
    Node node(started(client()));
    const Peer peer = node.connect(server.address());
    const Package basics = Package::open(package("basics.c"));
    const Reply reply = peer.call(basics.entry("count")).reply();
    EXPECT_EQ(reply.ran, RanAs::resident);
    EXPECT_EQ(peer.counters().code_bytes_sent, 0U) << "code was sent to a node that has it";
    EXPECT_EQ(as<long>(peer.call(basics.entry("count")).get()), 2);
}

TEST_P(CodeTravels, TwoVersionsOfOneNameAnswerTogether) {
    const Server server(GetParam());
    Node node(started(client()));
    const Peer peer = node.connect(server.address());
    const Package one = Package::open(package("version.c", {"-DVERSION=1"}));
    const Package two = Package::open(package("version.c", {"-DVERSION=2"}));
    ASSERT_EQ(one.name(), two.name());
    ASSERT_NE(one.entry("version").id(), two.entry("version").id());
    std::vector<RawCall> calls;
    for (int i = 0; i < 50; ++i) {
        calls.push_back(peer.call(one.entry("version")));
        calls.push_back(peer.call(two.entry("version")));
    }
    for (int i = 0; i < 100; ++i) {
        const auto answer = as<Version>(calls[static_cast<std::size_t>(i)].get());
        EXPECT_EQ(answer.version, i % 2 + 1);
        EXPECT_EQ(answer.calls, i / 2 + 1) << "each version has statics of its own";
    }
}

// The node forgets even what its handles meant; the client tells it, and nothing is lost.
TEST_P(CodeTravels, HandlesThatTheNodeHasForgottenAreToldAgain) {
    const Server server(GetParam(),
                        {{"--code-budget", "0", "--known-packages", "2", "--forms", "image"}, [](NodeOptions& options) {
                             options.code_bytes_max = 0;
                             options.packages_max = 2;
                             options.forms = Forms::image;
                         }});
    Node node(started(client()));
    const Peer peer = node.connect(server.address());
    std::vector<Package> packages;
    for (const char* answer : {"-DANSWER=0", "-DANSWER=1", "-DANSWER=2", "-DANSWER=3"})
        packages.push_back(Package::open(package("plain.c", {answer})));
    for (int round = 0; round < 10; ++round)
        for (int i = 0; i < 4; ++i)
            ASSERT_EQ(as<int>(peer.call(packages[static_cast<std::size_t>(i)].entry("plain")).get()), i) << round;
    std::vector<RawCall> calls;
    for (int i = 0; i < 200; ++i) calls.push_back(peer.call(packages[static_cast<std::size_t>(i % 4)].entry("plain")));
    for (int i = 0; i < 200; ++i) EXPECT_EQ(as<int>(calls[static_cast<std::size_t>(i)].get()), i % 4);
}

TEST_P(CodeTravels, FormsThatExcludeEachOtherAreSaidAtOnce) {
    const Package basics = Package::open(package("basics.c"));
    for (const auto& [sends, takes, set] :
         {std::tuple{Forms::image, "bitcode", +[](NodeOptions& options) { options.forms = Forms::bitcode; }},
          {Forms::bitcode, "image", +[](NodeOptions& options) { options.forms = Forms::image; }}}) {
        const Server server(GetParam(), {{"--forms", takes}, set});
        Node node(started(client(sends)));
        Peer peer = node.connect(server.address());
        const std::string why = std::string("package basics has come without its ") + takes + ", and the node at " +
                                server.address() + " takes " + takes + " only (--forms " + takes + ")";
        const auto begun = std::chrono::steady_clock::now();
        for (const Error& error :
             {error_of([&] { (void)peer.call(basics.entry("count")).get(); }),
              error_of([&] { (void)peer.call(basics.entry("count")).get(); }), error_of([&] { peer.load(basics); })}) {
            EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.message();
            EXPECT_NE(error.message().find(why), std::string::npos) << error.message();
        }
        EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(4)) << "code that comes is waited for";
        Node other(started(client()));  // it sends both
        EXPECT_EQ(as<long>(other.connect(server.address()).call(basics.entry("count")).get()), 1);
        EXPECT_EQ(as<long>(peer.call(basics.entry("count")).get()), 2) << "now it is there";
    }
}

TEST_P(CodeTravels, WithoutAFormForTheTargetTheCallSaysSo) {
    const Server server(GetParam());
    Node node(started(client()));
    const Peer peer = node.connect(server.address());
    const Package other = Package::open(package("basics.c", {"--target", "aarch64-linux-gnu"}, "other"));
    try {
        (void)peer.call(other.entry("count")).get();
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_NE(std::string(error.what()).find("other has no form for x86_64-linux-gnu"), std::string::npos)
            << error.what();
    }
}

TEST_P(CodeTravels, WithoutAFormThatItsProgramSendsTheCallSaysSo) {
    const Server server(GetParam());
    Node node(started(client(Forms::image)));
    const Peer peer = node.connect(server.address());
    const Package assembly = Package::open(package("assembly.c"));
    try {
        (void)peer.call(assembly.entry("go")).get();
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_NE(std::string(error.what()).find("(bitcode), and this program sends image"), std::string::npos)
            << error.what();
    }
}

// ---- where there is no room for it

class Budget : public testing::TestWithParam<std::tuple<TestFabric, Forms>> {
protected:
    Budget() { (void)scratch(); }  // the tests' own cookie
    [[nodiscard]] static const TestFabric& fabric() { return std::get<TestFabric>(GetParam()); }
    [[nodiscard]] static Forms forms() { return std::get<Forms>(GetParam()); }
    [[nodiscard]] static Node started() {
        NodeOptions options = client(forms());
        options.fabric = fabric();
        return fabric().start(options);
    }
};

TEST_P(Budget, EvictedOnEveryCallEveryReplyIsRight) {
    const Server server(fabric(), {{"--code-budget", "0"}, [](NodeOptions& options) { options.code_bytes_max = 0; }});
    Node node(started());
    const Peer peer = node.connect(server.address());
    const Package basics = Package::open(package("basics.c"));
    const Package one = Package::open(package("version.c", {"-DVERSION=1"}));
    const std::uint64_t before = peer.counters().code_bytes_sent;
    for (int i = 1; i <= 60; ++i) {
        ASSERT_EQ(as<long>(peer.call(basics.entry("count")).get()), i);
        const auto answer = as<Version>(peer.call(one.entry("version")).get());
        ASSERT_EQ(answer.version, 1);
        ASSERT_EQ(answer.calls, i);
        ASSERT_EQ(text(peer.call(basics.entry("echo"), bytes("kept")).get()), "kept");
    }
    if (forms() != Forms::bitcode)  // bitcode alone keeps its statics in its code, and so is not evicted
        EXPECT_GT(peer.counters().code_bytes_sent - before, 60U * 100)
            << "the code was not sent again: nothing was evicted";
}

TEST_P(Budget, PipelinedCallsToEvictedCodeKeepTheirOrder) {
    // With more threads they start in order, and may not count in it.
    const Server server(fabric(), {{"--code-budget", "0", "--threads", "1"}, [](NodeOptions& options) {
                                       options.code_bytes_max = 0;
                                       options.threads = 1;
                                   }});
    Node node(started());
    const Peer peer = node.connect(server.address());
    const Package basics = Package::open(package("basics.c"));
    const Package one = Package::open(package("version.c", {"-DVERSION=1"}));
    std::vector<RawCall> calls;
    for (int i = 0; i < 100; ++i) {
        calls.push_back(peer.call(basics.entry("count")));
        calls.push_back(peer.call(one.entry("version")));
    }
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(as<long>(calls[static_cast<std::size_t>(2 * i)].get()), i + 1);
        EXPECT_EQ(as<Version>(calls[static_cast<std::size_t>(2 * i + 1)].get()).calls, i + 1);
    }
}

INSTANTIATE_TEST_SUITE_P(Fabrics, Budget,
                         testing::Combine(testing::ValuesIn(kFabrics),
                                          testing::Values(Forms::both, Forms::image, Forms::bitcode)),
                         [](const auto& info) {
                             const Forms forms = std::get<Forms>(info.param);
                             return std::string(std::get<TestFabric>(info.param).name) + "_" +
                                    (forms == Forms::both    ? "both"
                                     : forms == Forms::image ? "image"
                                                             : "bitcode");
                         });

// Nothing keeps their code while they wait, and the node is full: it is forgotten, and asked for again.
class CodeOfWaitingCalls : public CodeTravels {
protected:
    static constexpr int kShort = 20, kLong = 1500;
    static Entry entry(int number) {
        return Package::open(package("sleeps.c", {fmt::format("-DNUMBER={}", number)})).entry("sleeps");
    }
    static int called(const Peer& peer, int number, int ms) {
        return as<int>(peer.call(entry(number), bytes_of(ms)).get());
    }
    static std::span<const std::byte> bytes_of(const int& ms) { return std::as_bytes(std::span(&ms, 1)); }
    // By then the node has looked at what it was sent.
    static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(200)); }
    // Of another client each, so that none waits behind another one.
    Peer client_of_its_own() {
        NodeOptions options = client();
        options.own_thread = true;
        clients_.push_back(std::make_unique<Node>(started(options)));
        return clients_.back()->connect(server_.address());
    }
    // Two functions that are known to take long, on both threads.
    std::vector<RawCall> keep_threads() {
        const Peer peer = client_of_its_own();
        for (int i = 0; i < 6; ++i) EXPECT_EQ(called(peer, 0, kShort), 0);
        std::vector<RawCall> held;
        for (int i = 0; i < 2; ++i) held.push_back(peer.call(entry(0), bytes_of(kLong)));
        pause();
        return held;
    }
    // What a call of a short function answered. Where both threads' functions end at different times, three packages may be in use at once,
    // and there is no place for another: then it is called again.
    int result_of(RawCall& call, int number) {
        for (;;) try {
                return as<int>(call.get());
            } catch (const Error& error) {
                if (error.code() != ErrorCode::overloaded) throw;
                call = client_of_its_own().call(entry(number), bytes_of(kShort));
            }
    }
    Server server_{GetParam(), {{"--known-packages", "3", "--threads", "2"}, [](NodeOptions& options) {
                                    options.packages_max = 3;
                                    options.threads = 2;
                                }}};
    std::vector<std::unique_ptr<Node>> clients_;
};
// Each takes two seconds.
ROVE_ON_FABRICS_WITH_ONE_SEED(CodeOfWaitingCalls);

TEST_P(CodeOfWaitingCalls, IsAskedForAgain) {
    std::vector<RawCall> held = keep_threads();
    held.push_back(client_of_its_own().call(entry(1), bytes_of(kLong)));  // nothing else runs now
    pause();
    RawCall first = client_of_its_own().call(entry(2), bytes_of(kShort));
    pause();
    RawCall second = client_of_its_own().call(entry(3), bytes_of(kShort));
    for (RawCall& each : held) (void)each.get();
    EXPECT_EQ(result_of(first, 2), 2);
    EXPECT_EQ(result_of(second, 3), 3);
}

TEST_P(CodeOfWaitingCalls, IsFoundByAHandleThatWasForgottenMeanwhile) {
    const Peer peer = client_of_its_own();
    for (int i = 0; i < 6; ++i) ASSERT_EQ(called(peer, 1, kShort), 1);
    std::vector<RawCall> held = keep_threads();
    RawCall waits = peer.call(entry(1), bytes_of(kShort));
    pause();
    std::vector<RawCall> crowd;
    for (int number = 2; number < 8; ++number)
        crowd.push_back(client_of_its_own().call(entry(number), bytes_of(kShort)));
    for (RawCall& each : held) (void)each.get();
    EXPECT_EQ(as<int>(waits.get()), 1);
    for (int number = 2; number < 8; ++number)
        EXPECT_EQ(result_of(crowd[static_cast<std::size_t>(number - 2)], number), number);
}

// ---- interfaces

class Interfaces : public CodeTravels {};
ROVE_ON_FABRICS(Interfaces);

struct Shelf {
    long label, value, salt;
};

TEST_P(Interfaces, FunctionsLinkToWhatIsLoaded) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        const Server server(GetParam());
        Node node(started(client(forms)));
        const Peer peer = node.connect(server.address());
        const Package shelf = Package::open(package("shelf.c", {"--interface", "-DLABEL=1"}));
        EXPECT_TRUE(shelf.is_interface());
        EXPECT_TRUE(peer.load(shelf).replaced.empty());
        const Package user = Package::open(package("shelf_user.c"));
        const long n = 7;
        const auto answer = as<Shelf>(peer.call(user.entry("put"), std::as_bytes(std::span(&n, 1))).get());
        EXPECT_EQ(answer.label, 1);
        EXPECT_EQ(answer.value, 107);
    }
}

TEST_P(Interfaces, ASecondOneSaysSoAndChangesOnlyWhatArrivesAfterIt) {
    const Server server(GetParam());
    Node node(started(client()));
    const Peer peer = node.connect(server.address());
    (void)peer.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=1"})));
    const Package before = Package::open(package("shelf_user.c"));
    EXPECT_EQ(as<Shelf>(peer.call(before.entry("put")).get()).label, 1);
    const LoadReport report = peer.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=2"})));
    ASSERT_EQ(report.replaced.size(), 3U);
    EXPECT_NE((report.replaced[0] + report.replaced[1] + report.replaced[2]).find("shelf_add (was of package shelf)"),
              std::string::npos);
    const Package after = Package::open(package("shelf_user.c", {"-DSALT=1"}));
    EXPECT_EQ(as<Shelf>(peer.call(after.entry("put")).get()).label, 2);
    EXPECT_EQ(as<Shelf>(peer.call(before.entry("put")).get()).label, 1);
    if (GetParam().joins_processes()) EXPECT_NE(server.log().find("takes over shelf_add"), std::string::npos);
}

// The bitcode comes from a second client, when the names are another interface's by then.
TEST_P(Interfaces, AllFormsOfAPackageLinkToTheOneThatItsFirstFound) {
    const Server server(GetParam());
    Node of_image(started(client(Forms::image)));
    const Peer peer = of_image.connect(server.address());
    (void)peer.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=1"})));
    const Package user = Package::open(package("shelf_user.c"));
    EXPECT_EQ(as<Shelf>(peer.call(user.entry("put")).get()).label, 1);
    EXPECT_EQ(peer.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=2"}))).replaced.size(), 3U);
    EXPECT_EQ(as<Shelf>(peer.call(user.entry("put")).get()).label, 1);
    Node of_both(started(client()));
    const Peer other = of_both.connect(server.address());
    (void)other.load(user);
    Reply last = other.call(user.entry("put")).reply();
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
         last.ran != RanAs::bitcode && std::chrono::steady_clock::now() < until;)
        last = other.call(user.entry("put")).reply();
    EXPECT_EQ(last.ran, RanAs::bitcode);
    EXPECT_EQ(as<Shelf>(last.data).label, 1);
}

TEST_P(Interfaces, OneSaysWhichOfItsNamesStayTheNodesOwn) {
    const Server server(GetParam());
    Node node(started(client()));
    const Peer peer = node.connect(server.address());
    const LoadReport first = peer.load(Package::open(package("shelf.c", {"--interface", "-Dshelf_label=getppid"})));
    EXPECT_EQ(first.replaced, std::vector<std::string>{});
    EXPECT_EQ(first.kept, std::vector<std::string>{"getppid"});
    const LoadReport second =
        peer.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=2", "-Dshelf_label=getppid"})));
    EXPECT_EQ(second.replaced.size(), 2U);  // shelf_add and shelf_value, which were the first one's
    EXPECT_EQ(second.kept, std::vector<std::string>{"getppid"});
}

TEST_P(Interfaces, TwoNodesHoldDifferentOnesForOneName) {
    const Server left(GetParam()), right(GetParam());
    Node node(started(client()));
    const Peer to_left = node.connect(left.address()), to_right = node.connect(right.address());
    (void)to_left.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=1"})));
    (void)to_right.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=2"})));
    const Package user = Package::open(package("shelf_user.c"));
    EXPECT_EQ(as<Shelf>(to_left.call(user.entry("put")).get()).value, 100);
    EXPECT_EQ(as<Shelf>(to_right.call(user.entry("put")).get()).value, 200);
}

}  // namespace
}  // namespace rove::test
