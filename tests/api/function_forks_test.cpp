// Functions and callbacks that fork, or end their thread: the child has no node, and the node keeps its thread.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../node/soon.hpp"
#include "engine/here.hpp"
#include "nodes.hpp"
#include "rove/task.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

// A child that is not ended lives on as its parent does, and would outlive a test that fails.
pid_t forked() {
    const pid_t child = fork();
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}
// How it ended; -1: it did not within ten seconds.
int end_of(pid_t child) {
    int status = 0;
    for (int i = 0; i < 1000; ++i, usleep(10'000))
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

std::atomic<int> runs{0};

int child_returns() {
    const pid_t child = forked();
    return child == 0 ? 1000 : 2000 + end_of(child) + 10 * ++runs;
}
int child_throws() {
    const pid_t child = forked();
    if (child == 0) throw std::runtime_error("exec failed");
    return 2000 + end_of(child) + 10 * ++runs;
}
int child_replies(Here& here) {
    const pid_t child = forked();
    if (child != 0) return 2000 + end_of(child) + 10 * ++runs;
    const bool refused = rove_reply(here.raw(), "child", 5) != ROVE_OK && rove_fail(here.raw(), "child") != ROVE_OK &&
                         rove_forward(here.raw(), rove_node(here.raw()), "", 0) != ROVE_OK;
    _exit(refused ? 1 : 2);
}
// Where another thread leads while it waits, and where none does.
int child_ends_thread(int after_ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
    const pid_t child = forked();
    if (child == 0) pthread_exit(nullptr);
    return 2000 + end_of(child);
}
void end_thread() {
    pthread_exit(nullptr);
}
int end_thread_with(std::span<const int> values) {
    pthread_exit(nullptr);
    return static_cast<int>(values.size());
}
std::size_t length(const std::string& text) {
    return text.size();
}
std::atomic<int> napping{0};
std::atomic<bool> told{false}, stop{false};
void nap() {
    std::this_thread::sleep_for(200ms);
}
void nap_long() {
    std::this_thread::sleep_for(500ms);
}
void nap_and_end_thread() {
    ++napping;
    while (!told) std::this_thread::sleep_for(1ms);
    pthread_exit(nullptr);
}
void nap_on() {
    ++napping;
    while (!stop) std::this_thread::sleep_for(1ms);
}
int add(int a, int b) {
    return a + b;
}
void wait_for_nap_on(Here& here) {
    here.caller().sync(fn<nap_on>);
}
std::atomic<const code::Function*> polling{nullptr}, ending{nullptr};
void poll_for_nap_on_if(Here& here, bool polls) {
    polling = here.raw()->function;
    if (!polls) return;
    const Call<void> call = here.caller().async(fn<nap_on>);
    while (!call.done()) sched_yield();
}
void wait_quietly_and_end_thread(Here& here) {
    const NoNesting quiet;
    EXPECT_EQ(here.caller().sync(fn<add>, 1, 2), 3);
    pthread_exit(nullptr);
}
void end_thread_if(Here& here, bool ends) {
    ending = here.raw()->function;
    if (ends) pthread_exit(nullptr);
}

}  // namespace

class FunctionForks : public OnFabrics {
protected:
    void SetUp() override {
        OnFabrics::SetUp();
        runs = 0;
    }
};
// Some take seconds.
ROVE_ON_FABRICS_WITH_ONE_SEED(FunctionForks);

TEST_P(FunctionForks, AChildThatReturnsOrThrowsOrRepliesEnds) {
    for (int i = 1; i <= 9; i += 3) {
        EXPECT_EQ(peer().sync(within(30s), fn<child_returns>), 2000 + EXIT_FAILURE + 10 * i);
        EXPECT_EQ(peer().sync(within(30s), fn<child_throws>), 2000 + EXIT_FAILURE + 10 * (i + 1));
        EXPECT_EQ(peer().sync(within(30s), fn<child_replies>), 2000 + 1 + 10 * (i + 2));
    }
    EXPECT_EQ(runs, 9);
}

TEST_P(FunctionForks, AChildThatEndsItsThreadEnds) {
    for (const int after_ms : {0, 50, 0, 50})
        EXPECT_EQ(peer().sync(within(30s), fn<child_ends_thread>, after_ms), 2000 + EXIT_FAILURE);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(peer().sync(within(30s), fn<add>, i, 1), i + 1);
}

TEST_P(FunctionForks, AChildThatReturnsFromACallbackEnds) {
    std::atomic<int> ended{-2};
    call_back(peer(), [&] {
        const pid_t child = forked();
        if (child != 0) ended = end_of(child);
    });
    for (int i = 0; i < 3000 && ended == -2; ++i) {
        (void)node_->poll(1ms);
        usleep(5000);
    }
    EXPECT_EQ(ended, EXIT_FAILURE);
    EXPECT_EQ(peer().sync(within(30s), fn<add>, 1, 2), 3);
}

TEST_P(FunctionForks, AFunctionThatEndsItsThreadFailsAndTheNodeGoesOn) {
    for (int i = 0; i < 5; ++i) {
        const Error error = error_of([&] { peer().sync(within(30s), fn<end_thread>); });
        EXPECT_EQ(error.code(), ErrorCode::failed) << error.message();
        EXPECT_NE(error.message().find("wanted to end its thread"), std::string::npos) << error.message();
        EXPECT_EQ(peer().sync(within(30s), fn<add>, i, 2), i + 2);
    }
    const auto begun = std::chrono::steady_clock::now();
    server_.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 4s) << "its end waited for those threads";
}

// They may be others' calls, which wait in the same thread.
TEST_P(FunctionForks, AFunctionThatEndsItsThreadEndsThoseThatWaitBeneathIt) {
    NodeOptions one = options(true);
    one.threads = 1;
    auto server = std::make_unique<Node>(started(one));
    const Peer to = node_->connect(server->address());
    napping = 0;
    stop = false;
    Call<void> lower = to.async(fn<wait_for_nap_on>), upper = to.async(fn<wait_for_nap_on>);
    for (int i = 0; i < 10'000 && napping < 2; ++i) std::this_thread::sleep_for(1ms);
    ASSERT_EQ(napping, 2);
    EXPECT_EQ(error_of([&] { to.sync(within(30s), fn<end_thread>); }).code(), ErrorCode::failed);
    for (Call<void>* const call : {&lower, &upper}) {
        ASSERT_TRUE(call->wait_for(20s)) << "nobody answers it";
        const Error error = error_of([&] { call->get(); });
        EXPECT_EQ(error.code(), ErrorCode::failed);
        EXPECT_NE(error.message().find("its thread ran"), std::string::npos) << error.message();
    }
    EXPECT_EQ(to.sync(within(30s), fn<add>, 1, 2), 3);
    const auto begun = std::chrono::steady_clock::now();
    server.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 4s) << "its end waited for those threads";
    stop = true;
}

// One that asks again and again whether its call has ended has a place among those that run long, which is another one's then. Polls take
// the lead, and run others on top of themselves, once each of the node's threads has one of them.
TEST_P(FunctionForks, AFunctionThatEndsItsThreadGivesThePlacesBeneathItBack) {
    NodeOptions wide = options(), two = options(true);
    wide.threads = 8;  // it runs what the polls ask about
    two.threads = 2;
    Node server(started(two)), client(started(wide));
    const Peer to = client.connect(server.address());
    // Both are known to be short, once a run of each has ended that the machine has not interrupted: otherwise they wait for a thread.
    ASSERT_TRUE(soon([&] {
        to.sync(within(30s), fn<poll_for_nap_on_if>, false);
        to.sync(within(30s), fn<end_thread_if>, false);
        return polling.load()->pace.is_short() && ending.load()->pace.is_short();
    }));
    for (int i = 0; i < 3; ++i) to.sync(within(30s), fn<nap>);  // and this one to be long
    napping = 0;
    stop = false;
    std::vector<Call<void>> polls;
    for (int i = 0; i < 4; ++i) {  // a node with two threads for long functions has two more of its own
        polls.push_back(to.async(fn<poll_for_nap_on_if>, true));
        for (int waits = 0; waits < 10'000 && napping <= i; ++waits) std::this_thread::sleep_for(1ms);
        ASSERT_EQ(napping, i + 1);
    }
    const auto has_ended = [](const Call<void>& call) { return call.done(); };
    for (int i = 0; i < 8 && std::none_of(polls.begin(), polls.end(), has_ended); ++i) {
        EXPECT_EQ(error_of([&] { to.sync(within(30s), fn<end_thread_if>, true); }).code(), ErrorCode::failed);
        std::this_thread::sleep_for(100ms);
    }
    const auto beneath = std::find_if(polls.begin(), polls.end(), has_ended);
    ASSERT_NE(beneath, polls.end()) << "none was beneath it";
    EXPECT_EQ(error_of([&] { beneath->get(); }).code(), ErrorCode::failed);
    polls.erase(beneath);
    stop = true;
    for (const Call<void>& poll : polls) ASSERT_TRUE(poll.wait_for(20s));  // beneath that one as well, or it ends now
    napping = 0;
    stop = false;
    const Call<void> other = to.async(fn<nap_on>);
    for (int i = 0; i < 10'000 && napping < 1; ++i) std::this_thread::sleep_for(1ms);
    ASSERT_EQ(napping, 1);
    EXPECT_NO_THROW(to.sync(within(10s), fn<nap>)) << "one of two places is taken, and it does not begin";
    stop = true;
    EXPECT_TRUE(other.wait_for(20s));
}

// As many functions of one peer may have waited quietly, and not returned.
TEST_P(FunctionForks, AFunctionThatEndsItsThreadHasNoQuietPlace) {
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(error_of([&] { peer().sync(within(30s), fn<wait_quietly_and_end_thread>); }).code(),
                  ErrorCode::failed);
    EXPECT_NO_THROW(peer().sync(within(9s), fn<nap>)) << "nothing is known of it";
}

// Of the caller's node, whose thread it is.
TEST_P(FunctionForks, ACallbackThatEndsItsThreadIsKept) {
    for (int i = 0; i < 3; ++i) {
        std::atomic<bool> runs_there{false};
        call_back(peer(), [&] {
            runs_there = true;
            pthread_exit(nullptr);
        });
        EXPECT_TRUE(soon([&] { return runs_there.load(); }));
        EXPECT_EQ(peer().sync(within(30s), fn<add>, i, 2), i + 2);
    }
}

// Of a call that has ended: the callback runs in the thread that asks for it, which is the program's to end.
TEST_P(FunctionForks, ACallbackThatEndsTheProgramsThreadEndsIt) {
    std::atomic<bool> goes_on{false};
    std::thread own([&] {
        Call<int> sum = peer().async(fn<add>, 1, 2);
        (void)sum.wait_for(20s);
        sum.then([](const Call<int>& /*ended*/) { pthread_exit(nullptr); });
        goes_on = true;
    });
    own.join();
    EXPECT_FALSE(goes_on);
    EXPECT_EQ(peer().sync(within(20s), fn<add>, 1, 2), 3);
}

// The program's own thread, which waits and leads for others that wait. Which thread runs the callback is a matter of luck.
TEST_P(FunctionForks, AProgramsThreadThatEndsWhereItWaitsKeepsNobody) {
    constexpr int kTimes = 8;
    for (int i = 0; i < kTimes; ++i) {
        NodeOptions mine = options();
        mine.own_thread = i > 0;
        mine.grace = 20s;
        auto client = std::make_unique<Node>(started(mine));
        const Peer to = client->connect(server_->address());
        stop = false;
        napping = 0;
        std::thread([to] {
            to.async(fn<nap>).then([](const Call<void>& /*ended*/) { pthread_exit(nullptr); });
            try {
                to.sync(fn<nap_on>);
            } catch (const Error&) {  // where one of the node's own threads was the one that ended
            }
        }).detach();
        ASSERT_TRUE(soon([] { return napping > 0; }));
        // Their answers come after the thread's end. One of these may be the thread that ends; the test's own waits for none of it.
        const auto answered = std::make_shared<std::atomic<int>>(0);
        for (int k = 0; k < 2; ++k)
            std::thread([to, answered] {
                try {
                    if (to.async(fn<nap_long>).wait_for(20s)) ++*answered;
                } catch (const Error&) {  // late: the node has ended
                }
            }).detach();
        EXPECT_TRUE(soon([&] { return *answered > 0; })) << "nobody leads";
        stop = true;
        const auto begun = std::chrono::steady_clock::now();
        client.reset();
        EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s) << "its end waited for that thread";
    }
}

Task<int> end_thread_in_coroutine(Peer peer, std::atomic<bool>& runs_there) {
    // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the thread ends before it is returned
    const int sum = co_await peer.async(fn<add>, 1, 2);
    runs_there = true;
    pthread_exit(nullptr);
    co_return sum;
}
TEST_P(FunctionForks, ACoroutineThatEndsItsThreadIsKept) {
    NodeOptions mine = options();
    mine.own_thread = false;
    Node client(started(mine));
    const Peer to = client.connect(server_->address());
    std::atomic<bool> runs_there{false};
    std::thread([&, to] { (void)sync_wait(end_thread_in_coroutine(to, runs_there)); }).detach();
    ASSERT_TRUE(soon([&] { return runs_there.load(); }));
    EXPECT_EQ(to.sync(within(30s), fn<add>, 1, 2), 3);
}

// What it had in the mailbox is given back, and its place among functions that run long.
TEST_P(FunctionForks, AFunctionThatEndsItsThreadKeepsNothing) {
    EXPECT_EQ(error_of([&] { (void)peer().sync(fn<end_thread_with>, std::vector<int>(10)); }).code(),
              ErrorCode::failed);
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(peer().limited(within(20s)).sync(fn<length>, std::string(1'000'000, 'x')), 1'000'000U);

    NodeOptions few = options(true);
    few.threads = 2;
    Node server(started(few));
    Node caller(started(options()));
    const Peer to = caller.connect(server.address());
    napping = 0;
    told = true;
    to.sync(fn<nap>);  // it is known to run long from here on
    told = false;
    to.post(fn<nap_and_end_thread>);
    to.post(fn<nap_on>);
    for (int i = 0; i < 10'000 && napping < 2; ++i) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(100ms);
    Call<void> waits = to.async(fn<nap>);
    std::this_thread::sleep_for(100ms);
    told = true;
    EXPECT_TRUE(waits.wait_for(10s)) << "nobody begins it";
    stop = true;
}

TEST(FunctionForks, AChildThatLetsAnExceptionOutOfAnEntryEnds) {
    const NodeProcess node;
    Node client;
    const Peer peer = client.connect(node.address());
    const Package package = Package::open(test::package("child_throws.cpp"));
    for (int i = 0; i < 5; ++i) {
        const auto result = peer.call(package.entry("child_throws")).get();
        int status = 0;
        ASSERT_EQ(result.size(), sizeof status);
        std::memcpy(&status, result.data(), sizeof status);
        EXPECT_EQ(status, EXIT_FAILURE);
    }
}

// In whose frames nothing catches.
TEST(FunctionForks, AFunctionInCThatEndsItsThreadFailsAndTheNodeGoesOn) {
    (void)scratch();
    const Package package = Package::open(test::package("ends_thread.c"));
    for (const char* const threads : {"1", "4"}) {
        NodeProcess node({"--threads", threads});
        NodeOptions options;
        options.log = "off";
        Node client(options);
        const Peer peer = client.connect(node.address());
        for (int i = 0; i < 4; ++i) {
            RawCall call = peer.call(package.entry(i % 2 == 0 ? "end_thread" : "end_thread_of_c11"));
            ASSERT_TRUE(call.wait_for(30s)) << "nobody leads";
            EXPECT_EQ(error_of([&] { (void)call.get(); }).code(), ErrorCode::failed);
            RawCall next = peer.call(package.entry("answer"));
            ASSERT_TRUE(next.wait_for(30s)) << "nobody leads";
            EXPECT_EQ(next.get().size(), 2U);
        }
#if !defined(__SANITIZE_THREAD__) && !__has_feature(thread_sanitizer)  // whose runtime does not know the threads of C11
        const auto result = peer.call(package.entry("result_of_thread")).get();
        ASSERT_EQ(result.size(), sizeof(int));
        EXPECT_EQ(*reinterpret_cast<const int*>(result.data()), 7);
#endif
        EXPECT_NE(node.log().find("end_thread on node 0 wanted to end its thread"), std::string::npos) << node.log();
        (void)peer.call(package.entry("speak_at_the_end")).get();
        node.signal(SIGTERM);
        EXPECT_EQ(node.wait(), 0);
        EXPECT_NE(node.log().find("spoken at the end"), std::string::npos) << "handlers run, whatever threads are kept";
    }
}

// Whoever has made the thread waits for its end.
TEST(FunctionForks, AFunctionThatDetachesItsThreadHasNoEffectOnTheNode) {
    (void)scratch();
    const Package package = Package::open(test::package("ends_thread.c"));
    NodeProcess node({"--threads", "2"});
    {
        Node client;
        const Peer peer = client.connect(node.address());
        for (int i = 0; i < 10; ++i) {
            const auto result = peer.call(package.entry("detach_thread")).get();
            ASSERT_EQ(result.size(), 2 * sizeof(int));
            EXPECT_TRUE(std::ranges::all_of(result, [](std::byte each) { return each == std::byte{0}; }));
        }
    }
    node.signal(SIGTERM);
    EXPECT_EQ(node.wait(), 0) << node.log();
}

// A thread that is to end does so at the next of many calls into the C library, which would be in the node's own code.
TEST(FunctionForks, AFunctionInCThatIsCancelledGoesOn) {
    (void)scratch();
    const Package package = Package::open(test::package("cancels_itself.c"));
    for (const char* const form : {"image", "bitcode", "both"}) {
        NodeProcess node({"--threads", "2", "--forms", form});
        NodeOptions options;
        options.log = "off";
        Node client(options);
        const Peer peer = client.connect(node.address());
        for (const char* const name : {"cancel_itself", "cancel_itself", "answer", "cancel_itself", "answer"}) {
            RawCall call = peer.call(package.entry(name));
            ASSERT_TRUE(call.wait_for(30s)) << name << ": nobody leads";
            EXPECT_EQ(call.get().size(), 2U) << name << ", " << form;
        }
        node.signal(SIGTERM);
        EXPECT_EQ(node.wait(), 0) << node.log();
    }
}

}  // namespace rove::test
