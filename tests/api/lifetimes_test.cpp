// Objects that outlive their node: operations are `cancelled`, destructors are silent and never wait.
#include <unistd.h>

#include "../node/soon.hpp"
#include "nodes.hpp"

namespace rove::test {

class Lifetimes : public OnFabrics {
protected:
    // The client of the fixture ends; its server stays.
    void end_node() { node_.reset(); }
    template <typename Work>
    void expect_cancelled(Work&& work) {
        const Error error = error_of(work);
        EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.message();
        EXPECT_NE(error.message().find("shut down"), std::string::npos) << error.message();
    }
};
ROVE_ON_FABRICS(Lifetimes);

TEST_P(Lifetimes, PeersAndBuffers) {
    const Peer kept = peer();
    const std::vector<int> host(100'000);
    std::vector<int> back(100'000);
    {
        const auto small = kept.allocate<int>(10).get(), large = kept.allocate<int>(100'000).get();
        end_node();
        expect_cancelled([&] { (void)kept.sync([] { return 1; }); });
        expect_cancelled([&] { kept.post([] {}); });
        expect_cancelled([&] { (void)kept.allocate<int>(10).get(); });
        expect_cancelled([&] { kept.put(host, large).get(); });
        expect_cancelled([&] { kept.get(large, back).get(); });
        expect_cancelled([&] { kept.put(std::vector<int>(10), small).get(); });
        expect_cancelled([&] { copy(small, large).get(); });
        expect_cancelled([&] { (void)kept.sync([](std::span<const int> s) { return s.size(); }, small); });
        expect_cancelled([&] { (void)kept.functions(); });
        expect_cancelled([&] { (void)kept.ping().get(); });
    }
    (void)kept.counters();
    (void)kept.description();
}

std::atomic<int> counted;
void count_post() {
    ++counted;
}
void count_slowly() {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++counted;
}

// What has been posted is begun before the node ends; it would be dropped with the link.
TEST_P(Lifetimes, PostsAreBegunBeforeTheirNodeEnds) {
    counted = 0;
    peer().sync(fn<count_post>);
    peer().post(fn<count_slowly>);
    for (int i = 0; i < 1000; ++i) peer().post(fn<count_post>);
    peer_.reset();
    end_node();
    EXPECT_TRUE(soon([] { return counted == 1002; })) << counted;
}

TEST_P(Lifetimes, PostsOfANodeWithoutThreadsAreBegunBeforeItEnds) {
    counted = 0;
    {
        NodeOptions without_threads = options();
        without_threads.own_thread = false;
        Node polled(started(without_threads));
        const Peer to = polled.connect(server_->address());
        to.sync(fn<count_post>);
        to.post(fn<count_slowly>);
        for (int i = 0; i < 1000; ++i) to.post(fn<count_post>);
    }
    EXPECT_TRUE(soon([] { return counted == 1002; })) << counted;
}

// A peer that does not answer costs a fifth of the grace, and not more.
TEST_P(Lifetimes, APeerThatBeginsNoPostsDoesNotKeepItsNodeFromEnding) {
    NodeOptions quiet = options(true);
    quiet.own_thread = false;
    Node never_polled(started(quiet));
    Node posts(started(options()));
    posts.connect(never_polled.address()).post(fn<count_post>);
    const auto begun = std::chrono::steady_clock::now();
    {
        const Node ended = std::move(posts);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(15)) << "it waits for ever";
}

TEST_P(Lifetimes, CallsFramesBatchesAndTasks) {
    const Package package = Package::open(test::package("basics.c"));
    const Entry entry = package.entry("echo");
    (void)peer().call(entry).get();
    const Peer kept = peer();
    Call<int> call = peer().async([] { return 1; });
    RawCall raw = peer().call(entry);
    auto allocation = peer().allocate<int>(3);
    Batch batch = peer().batch(entry, 8);
    (void)batch.add();
    auto frame = std::make_unique<CallFrame>(peer().begin(entry, 16));
    const auto ask = [](Peer to) -> Task<int> { co_return co_await to.async([] { return 3; }); };
    Task<int> task = ask(peer());
    peer_.reset();
    end_node();
    const auto ended = [](auto&& work) {  // with the result that had come, or as cancelled
        try {
            work();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.message();
        }
    };
    ended([&] { (void)call.get(); });
    ended([&] { (void)raw.get(); });
    ended([&] { (void)allocation.get(); });
    expect_cancelled([&] { batch.post(); });
    expect_cancelled([&] { frame->post(); });
    expect_cancelled([&] { (void)sync_wait(std::move(task)); });
    frame.reset();
}

TEST(LifetimesOfPrograms, GlobalsOfEveryKindEnd) {
    const NodeProcess node;
    const Ran ran =
        run({built("api_lifetimes"), "globals", node.address(), package("basics.c")}, std::chrono::seconds(10));
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_NE(ran.out.find("filled"), std::string::npos);
    EXPECT_EQ(ran.err, "");
}

// The thread that reads the program's code, so that it can travel, is the parent's: the child must not wait for its end.
TEST(LifetimesOfPrograms, WhatFunctionsPutIntoAProgramsObjectOutlivesItsNode) {
    const Ran ran = run({built("api_lifetimes"), "share"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "42\n");
}

TEST(LifetimesOfPrograms, AForksChildWithANodeOfItsOwnEnds) {
    const NodeProcess node;  // it has none of the program's functions
    const Ran ran = run({built("api_lifetimes"), "fork", node.address()});
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_EQ(ran.out, "child 7\n");
    EXPECT_EQ(ran.err, "");
}

// At that time a thread that the child does not have is making what the whole process has once.
TEST(LifetimesOfPrograms, AForksChildMakesANodeWhileItsParentMakesTheFirst) {
    for (unsigned after_us = 100; after_us < 20'000; after_us += after_us / 3) {
        const Ran ran = run({built("api_lifetimes"), "early-fork", std::to_string(after_us)}, std::chrono::seconds(60));
        EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
        EXPECT_EQ(ran.out, "child 7\n") << "a fork " << after_us << " us after its parent began with its node";
    }
}

TEST(LifetimesOfPrograms, AForksChildTakesFunctionsOutWhileItsParentDoes) {
    const Ran ran = run({built("api_first_calls")}, std::chrono::seconds(90));
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.out, "8 of 8 answered\n") << ran.err;
}

TEST(LifetimesOfPrograms, AKilledOnesMemoryIsGivenBack) {
    (void)scratch();
    NodeOptions options;
    options.listen = "127.0.0.1:0";
    options.log = "error";
    options.buffer_bytes_max = 1'000'000;
    Node server(options);
    Process holder = value_or_throw(
        Process::start({built("api_lifetimes"), "hold", server.address(), "900000"}, {.err = STDERR_FILENO}));
    EXPECT_FALSE(holder.read_line().empty());  // it holds them
    Node client;
    const Peer peer = client.connect(server.address());
    EXPECT_EQ(error_of([&] { (void)peer.allocate<char>(900'000).get(); }).code(), ErrorCode::overloaded);
    (void)holder.kill();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (bool given_back = false; !given_back;) {
        try {
            (void)peer.allocate<char>(900'000).get();
            given_back = true;
        } catch (const Error& error) {
            ASSERT_EQ(error.code(), ErrorCode::overloaded) << error.message();
            ASSERT_LT(std::chrono::steady_clock::now(), limit);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
}

}  // namespace rove::test
