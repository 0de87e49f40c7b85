// How code gets to a node, stays there, changes its tier, and goes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "../api/error_of.hpp"
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

TEST(Code, ImageAtOnceBitcodeBehindItOneSetOfStatics) {
    NodeProcess server;
    Node node(client());
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

TEST(Code, OneFormCanBePinned) {
    for (const auto& [forms, ran] : {std::pair{Forms::image, RanAs::image}, {Forms::bitcode, RanAs::bitcode}}) {
        NodeProcess server;
        Node node(client(forms));
        const Peer peer = node.connect(server.address());
        const Package basics = Package::open(package("basics.c"));
        for (long i = 1; i <= 20; ++i) {
            const Reply reply = peer.call(basics.entry("count")).reply();
            EXPECT_EQ(reply.ran, ran);
            EXPECT_EQ(as<long>(reply.data), i);
        }
    }
}

TEST(Code, PreloadedPackagesAreResident) {
    const std::filesystem::path folder = scratch() / "preload";
    std::filesystem::create_directory(folder);
    std::filesystem::copy_file(package("basics.c"), folder / "basics.rove",
                               std::filesystem::copy_options::overwrite_existing);
    NodeProcess server({"--packages", folder.string()});
    Node node(client());
    const Peer peer = node.connect(server.address());
    const Package basics = Package::open(package("basics.c"));
    const Reply reply = peer.call(basics.entry("count")).reply();
    EXPECT_EQ(reply.ran, RanAs::resident);
    EXPECT_EQ(peer.counters().code_bytes_sent, 0U) << "code was sent to a node that has it";
    EXPECT_EQ(as<long>(peer.call(basics.entry("count")).get()), 2);
}

TEST(Code, TwoVersionsOfOneNameAnswerTogether) {
    NodeProcess server;
    Node node(client());
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

class Budget : public testing::TestWithParam<Forms> {};

TEST_P(Budget, EvictedOnEveryCallEveryReplyIsRight) {
    NodeProcess server({"--code-budget", "0", "--log", "debug"});
    Node node(client(GetParam()));
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
    if (GetParam() != Forms::bitcode)  // bitcode alone keeps its statics in its code, and so is not evicted
        EXPECT_GT(peer.counters().code_bytes_sent - before, 60U * 100)
            << "the code was not sent again: nothing was evicted";
}

TEST_P(Budget, PipelinedCallsToEvictedCodeKeepTheirOrder) {
    NodeProcess server({"--code-budget", "0", "--threads", "1"});  // else they start in order, and may not count in it
    Node node(client(GetParam()));
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

INSTANTIATE_TEST_SUITE_P(Forms, Budget, testing::Values(Forms::both, Forms::image, Forms::bitcode),
                         [](const auto& info) {
                             return info.param == Forms::both    ? "both"
                                    : info.param == Forms::image ? "image"
                                                                 : "bitcode";
                         });

// The node forgets even what its handles meant; the client tells it, and nothing is lost.
TEST(Code, HandlesThatTheNodeHasForgottenAreToldAgain) {
    NodeProcess server({"--code-budget", "0", "--known-packages", "2", "--forms", "image"});
    Node node(client());
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

// Nothing keeps their code while they wait, and the node is full: it is forgotten, and asked for again.
class CodeOfWaitingCalls : public testing::Test {
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
        clients_.push_back(std::make_unique<Node>(options));
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
    NodeProcess server_{{"--known-packages", "3", "--threads", "2"}};
    std::vector<std::unique_ptr<Node>> clients_;
};

TEST_F(CodeOfWaitingCalls, IsAskedForAgain) {
    std::vector<RawCall> held = keep_threads();
    held.push_back(client_of_its_own().call(entry(1), bytes_of(kLong)));  // nothing else runs now
    pause();
    RawCall first = client_of_its_own().call(entry(2), bytes_of(kShort));
    pause();
    RawCall second = client_of_its_own().call(entry(3), bytes_of(kShort));
    for (RawCall& each : held) (void)each.get();
    EXPECT_EQ(as<int>(first.get()), 2);
    EXPECT_EQ(as<int>(second.get()), 3);
}

TEST_F(CodeOfWaitingCalls, IsFoundByAHandleThatWasForgottenMeanwhile) {
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
        EXPECT_EQ(as<int>(crowd[static_cast<std::size_t>(number - 2)].get()), number);
}

TEST(Code, ModernCppTravels) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        NodeProcess server;
        Node node(client(forms));
        const Peer peer = node.connect(server.address());
        const Package modern = Package::open(package("modern.cpp"));
        EXPECT_EQ(as<int>(peer.call(modern.entry("sides"), bytes("triangle")).get()), 3);
        EXPECT_EQ(as<int>(peer.call(modern.entry("sides"), bytes("square")).get()), 4);
        EXPECT_EQ(text(peer.call(modern.entry("sorted"), bytes("travelling functions")).get()), " acefgiillnnnorsttuv");
    }
}

TEST(Code, AnExceptionThatIsNotCaughtIsAFailedCall) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        NodeProcess server;
        Node node(client(forms));
        const Peer peer = node.connect(server.address());
        const Package modern = Package::open(package("modern.cpp"));
        try {
            (void)peer.call(modern.entry("sides"), bytes("circle")).get();
            FAIL();
        } catch (const Error& error) {
            EXPECT_STREQ(error.what(), "no shape circle");
        }
        try {
            (void)peer.call(modern.entry("leak")).get();
            FAIL();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::failed);
            EXPECT_NE(
                std::string(error.what()).find("modern:leak on node 0 let an exception out: straight through the roof"),
                std::string::npos)
                << error.what();
        }
        EXPECT_EQ(as<int>(peer.call(modern.entry("sides"), bytes("square")).get()), 4);
    }
}

TEST(Code, FormsThatExcludeEachOtherAreSaidAtOnce) {
    const Package basics = Package::open(package("basics.c"));
    for (const auto& [sends, takes] : {std::pair{Forms::image, "bitcode"}, {Forms::bitcode, "image"}}) {
        NodeProcess server({"--forms", takes});
        Node node(client(sends));
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
        Node other(client());  // it sends both
        EXPECT_EQ(as<long>(other.connect(server.address()).call(basics.entry("count")).get()), 1);
        EXPECT_EQ(as<long>(peer.call(basics.entry("count")).get()), 2) << "now it is there";
    }
}

TEST(Code, ThreadLocalsTravel) {
    for (const auto& [forms, ran] : {std::pair{Forms::image, RanAs::image}, {Forms::bitcode, RanAs::bitcode}}) {
        NodeProcess server({"--threads", "1"});
        Node node(client(forms));
        const Peer peer = node.connect(server.address());
        const Package threads = Package::open(package("threads.c"));
        for (long i = 42; i < 45; ++i) {
            const Reply reply = peer.call(threads.entry("local")).reply();
            EXPECT_EQ(reply.ran, ran);
            EXPECT_EQ(as<long>(reply.data), i);
        }
    }
}

TEST(Code, BothFormsHaveOneThreadLocal) {
    NodeProcess server({"--threads", "1"});
    Node node(client());
    const Peer peer = node.connect(server.address());
    const Package threads = Package::open(package("threads.c"));
    Reply last = peer.call(threads.entry("local")).reply();
    EXPECT_EQ(last.ran, RanAs::image);
    long calls = 42;
    EXPECT_EQ(as<long>(last.data), calls);
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
         last.ran != RanAs::bitcode && std::chrono::steady_clock::now() < until;) {
        last = peer.call(threads.entry("local")).reply();
        ASSERT_EQ(as<long>(last.data), ++calls);
    }
    EXPECT_EQ(last.ran, RanAs::bitcode);
}

TEST(Code, ThreadLocalsOfCppBeginAndEndWithEachThread) {
    for (const Forms forms : {Forms::image, Forms::bitcode, Forms::both}) {
        NodeProcess server({"--threads", "1"});
        Node node(client(forms));
        const Peer peer = node.connect(server.address());
        const Package locals = Package::open(package("thread_locals.cpp"));
        for (int round = 0; round < 2; ++round)
            EXPECT_EQ((as<std::array<int, 4>>(peer.call(locals.entry("in_new_threads")).get())),
                      (std::array{97, 97, 97, 3}));
        EXPECT_EQ(as<int>(peer.call(locals.entry("in_this_thread")).get()), 97);
        EXPECT_EQ(as<int>(peer.call(locals.entry("in_this_thread")).get()), 100);
    }
}

// The thread that serves a node runs its functions, and may go on when the node has ended.
TEST(Code, ThreadLocalsOfAThreadThatOutlivesItsNodeEndWithIt) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        const Package locals = Package::open(package("thread_locals.cpp"));
        int ended = 0;
        int* const count = &ended;
        std::thread([&] {
            NodeOptions options = client();
            options.listen = "127.0.0.1:0";
            Node server(options);
            std::atomic<bool> done{false};
            std::thread caller([&] {
                Node node(client(forms));
                const Peer peer = node.connect(server.address());
                (void)peer.call(locals.entry("tells_of_its_end"), std::as_bytes(std::span(&count, 1))).get();
                done = true;
            });
            while (!done) server.poll(std::chrono::milliseconds(1));
            caller.join();
        }).join();
        EXPECT_EQ(ended, 1);
    }
}

// The last registered first, as a program's end does.
TEST(Code, WhatIsRegisteredForTheExitIsCalledAtThePackagesEnd) {
    for (const Forms forms : {Forms::image, Forms::bitcode, Forms::both}) {
        const Package at_exit = Package::open(package("at_exit.c"));
        char trail[16] = "";
        char* const where = trail;
        {
            Node server({.listen = "127.0.0.1:0"});
            Node node(client(forms));
            const Peer peer = node.connect(server.address());
            EXPECT_EQ(as<int>(peer.call(at_exit.entry("at_exit"), std::as_bytes(std::span(&where, 1))).get()), 0);
            EXPECT_STREQ(trail, "");
        }
        EXPECT_STREQ(trail, "second first");
    }
}

TEST(Code, WhatIsRegisteredForAQuickExitIsCalledThen) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        NodeProcess server;
        Node node(client(forms));
        const Peer peer = node.connect(server.address());
        const Package at_exit = Package::open(package("at_exit.c"));
        EXPECT_EQ(error_of([&] { (void)peer.call(at_exit.entry("ends_quickly")).get(); }).code(),
                  ErrorCode::disconnected);
        EXPECT_EQ(server.wait(), 9);
    }
}

TEST(Code, WhatIsRegisteredForForksIsForgottenAtThePackagesEnd) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        const Package at_exit = Package::open(package("at_exit.c"));
        {
            Node server({.listen = "127.0.0.1:0"});
            Node node(client(forms));
            const Peer peer = node.connect(server.address());
            EXPECT_EQ(as<int>(peer.call(at_exit.entry("at_fork")).get()), 1111);
        }
        const pid_t child = fork_or_throw();
        if (child == 0) _exit(0);
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
}

TEST(Code, WhatTheCpuCanDoIsAskedWhereTheFunctionRuns) {
    int can = 0;
#ifdef __x86_64__
    __builtin_cpu_init();
    can = (__builtin_cpu_supports("sse2") != 0) + 2 * (__builtin_cpu_supports("avx2") != 0) +
          4 * (__builtin_cpu_supports("x86-64-v3") != 0) + 8 * (__builtin_cpu_is("intel") != 0) +
          16 * (__builtin_cpu_is("amd") != 0);
#endif
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        NodeProcess server;
        Node node(client(forms));
        const Peer peer = node.connect(server.address());
        const Package cpu = Package::open(package("cpu.c"));
        EXPECT_EQ(as<int>(peer.call(cpu.entry("features")).get()), can);
    }
}

// The text's length, and no call of the package's own functions.
TEST(Code, APackageWithItsOwnOperatorNewUsesTheNodes) {
    for (const Forms forms : {Forms::image, Forms::bitcode, Forms::both}) {
        NodeProcess server;
        Node node(client(forms));
        const Peer peer = node.connect(server.address());
        const Package own_new = Package::open(package("own_new.cpp"));
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ((as<std::array<int, 2>>(peer.call(own_new.entry("strings")).get())), (std::array{116, 0}));
    }
}

TEST(Code, FuturesAndWhatRunsOnceTravel) {
    for (const Forms forms : {Forms::image, Forms::bitcode, Forms::both}) {
        NodeProcess server;
        Node node(client(forms));
        const Peer peer = node.connect(server.address());
        const Package once = Package::open(package("once.cpp"));
        EXPECT_EQ(as<int>(peer.call(once.entry("async")).get()), 42);
        EXPECT_EQ(as<int>(peer.call(once.entry("promise")).get()), 44);
        EXPECT_EQ(as<int>(peer.call(once.entry("packaged")).get()), 81);
#if !__has_feature( \
    thread_sanitizer)  // whose pthread_once() does not come back where the function throws, in any program
        EXPECT_EQ(as<int>(peer.call(once.entry("once")).get()), 11);
        EXPECT_EQ(as<int>(peer.call(once.entry("once")).get()), 10) << "it has run";
#endif
        try {
            (void)peer.call(once.entry("broken")).get();
            FAIL();
        } catch (const Error& error) {
            EXPECT_STREQ(error.what(), "it broke");
        }
    }
}

TEST(Code, ListedLibrariesAreOpenedOnArrival) {
    NodeProcess server;
    Node node(client());
    const Peer peer = node.connect(server.address());
    const Package zlib = Package::open(package("zlib_user.c", {"--dep", "libz.so.1"}));
    EXPECT_EQ(as<unsigned long>(peer.call(zlib.entry("checksum"), bytes("123456789")).get()), 0xCBF43926UL);
    const Package absent = Package::open(package("zlib_user.c", {"--dep", "libnosuchthing.so.7", "--name", "absent"}));
    try {
        (void)peer.call(absent.entry("checksum")).get();
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::failed);
        EXPECT_NE(std::string(error.what()).find("libnosuchthing.so.7"), std::string::npos) << error.what();
    }
}

TEST(Code, ASymbolThatIsNowhereIsNamed) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        NodeProcess server;
        Node node(client(forms));
        const Peer peer = node.connect(server.address());
        const Package needy = Package::open(package("needy.c"));
        for (int i = 0; i < 2; ++i) {  // the second time as well
            try {
                (void)peer.call(needy.entry("needy")).get();
                FAIL();
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::failed);
                const std::string what = error.what();
                for (const std::string& part : {std::string("'nowhere_to_be_found'"), std::string("needy:needy"),
                                                "the node at " + server.address()})
                    EXPECT_NE(what.find(part), std::string::npos) << what;
            }
        }
    }
}

TEST(Code, WithoutAFormForTheTargetTheCallSaysSo) {
    NodeProcess server;
    Node node(client());
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

TEST(Code, WithoutAFormThatItsProgramSendsTheCallSaysSo) {
    NodeProcess server;
    Node node(client(Forms::image));
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

struct Shelf {
    long label, value, salt;
};

TEST(Interfaces, FunctionsLinkToWhatIsLoaded) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        NodeProcess server;
        Node node(client(forms));
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

TEST(Interfaces, ASecondOneSaysSoAndChangesOnlyWhatArrivesAfterIt) {
    NodeProcess server;
    Node node(client());
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
    EXPECT_NE(server.log().find("takes over shelf_add"), std::string::npos);
}

// The bitcode comes from a second client, when the names are another interface's by then.
TEST(Interfaces, AllFormsOfAPackageLinkToTheOneThatItsFirstFound) {
    NodeProcess server;
    Node of_image(client(Forms::image));
    const Peer peer = of_image.connect(server.address());
    (void)peer.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=1"})));
    const Package user = Package::open(package("shelf_user.c"));
    EXPECT_EQ(as<Shelf>(peer.call(user.entry("put")).get()).label, 1);
    EXPECT_EQ(peer.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=2"}))).replaced.size(), 3U);
    EXPECT_EQ(as<Shelf>(peer.call(user.entry("put")).get()).label, 1);
    Node of_both(client());
    const Peer other = of_both.connect(server.address());
    (void)other.load(user);
    Reply last = other.call(user.entry("put")).reply();
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
         last.ran != RanAs::bitcode && std::chrono::steady_clock::now() < until;)
        last = other.call(user.entry("put")).reply();
    EXPECT_EQ(last.ran, RanAs::bitcode);
    EXPECT_EQ(as<Shelf>(last.data).label, 1);
}

TEST(Interfaces, OneSaysWhichOfItsNamesStayTheNodesOwn) {
    NodeProcess server;
    Node node(client());
    const Peer peer = node.connect(server.address());
    const LoadReport first = peer.load(Package::open(package("shelf.c", {"--interface", "-Dshelf_label=getppid"})));
    EXPECT_EQ(first.replaced, std::vector<std::string>{});
    EXPECT_EQ(first.kept, std::vector<std::string>{"getppid"});
    const LoadReport second =
        peer.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=2", "-Dshelf_label=getppid"})));
    EXPECT_EQ(second.replaced.size(), 2U);  // shelf_add and shelf_value, which were the first one's
    EXPECT_EQ(second.kept, std::vector<std::string>{"getppid"});
}

TEST(Interfaces, TwoNodesHoldDifferentOnesForOneName) {
    NodeProcess left, right;
    Node node(client());
    const Peer to_left = node.connect(left.address()), to_right = node.connect(right.address());
    (void)to_left.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=1"})));
    (void)to_right.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=2"})));
    const Package user = Package::open(package("shelf_user.c"));
    EXPECT_EQ(as<Shelf>(to_left.call(user.entry("put")).get()).value, 100);
    EXPECT_EQ(as<Shelf>(to_right.call(user.entry("put")).get()).value, 200);
}

}  // namespace
}  // namespace rove::test
