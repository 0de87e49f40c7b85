// What code does where it has arrived: exceptions, thread-locals, exits, libraries. It is the same whatever lane it came by, so these tests
// run on one; code_travels_test.cpp has those of the way.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <span>
#include <thread>

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

}  // namespace
}  // namespace rove::test
