// Calls run once, links outlive what runs on their frames, somebody always leads, and nobody waits for ever: what used to break
// when several things happened at once.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>

#include "../api/nodes.hpp"
#include "../mailbox_memory.hpp"
#include "api/access.hpp"
#include "engine/here.hpp"
#include "engine_view.hpp"
#include "node/core.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::atomic<int> runs{0}, begun{0};
std::atomic<bool> go_on{false};

int add(int a, int b) {
    return a + b;
}
int count_up(int microseconds) {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    return ++runs;
}
std::size_t take(const std::vector<char>& bytes) {
    return bytes.size();
}
constexpr std::size_t kNumbered = 100;
std::array<std::atomic<int>, kNumbered> runs_of;
std::size_t take_numbered(std::size_t number, const std::vector<char>& bytes) {
    ++runs_of[number];
    return bytes.size();
}
std::atomic<std::size_t> made_bytes{0};
std::vector<char> make(std::uint64_t bytes) {
    made_bytes += bytes;
    return std::vector<char>(bytes, 'x');
}
// Sums its bytes only once it is told to.
std::uint64_t sum_late(std::span<const char> bytes) {
    ++begun;
    while (!go_on) std::this_thread::sleep_for(1ms);
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}
void wait_until_told() {
    ++begun;
    while (!go_on) std::this_thread::sleep_for(1ms);
}
std::size_t take_when_told(const std::vector<char>& bytes) {
    ++begun;
    while (!go_on) std::this_thread::sleep_for(1ms);
    return bytes.size();
}
std::atomic<NodeCore*> core_there{nullptr};
void core_here(Here& here) {
    core_there = &here.raw()->node();
    ++begun;
}
std::string echo(const std::string& text) {
    return text;
}

std::shared_ptr<PeerState> state(const Peer& peer) {
    return detail::Inside::state(peer);
}
// As if the connection had been cut, seen from this side.
void cut(const Peer& peer) {
    detail::Inside::core(peer)->first_engine().peers().lose(state(peer), state(peer)->meeting(),
                                                            Error(ErrorCode::disconnected, "cut by the test"));
}

class Dependable : public OnFabrics {
protected:
    void SetUp() override {
        runs = begun = 0;
        for (std::atomic<int>& each : runs_of) each = 0;
        go_on = false;
        OnFabrics::SetUp();
    }
    void TearDown() override {
        go_on = true;
        OnFabrics::TearDown();
    }
    // Others meet the server and leave, for as long as the work takes.
    template <typename Work>
    void while_others_come_and_go(const Work& work) {
        std::atomic<bool> stop{false};
        std::atomic<int> met{0};
        std::thread others([&] {
            while (!stop) {
                Node other(started(options()));
                if (other.connect(server_->address()).sync(fn<add>, 1, 1) == 2) ++met;
            }
        });
        ASSERT_TRUE(soon([&] { return met > 0; }));
        work();
        stop = true;
        others.join();
    }
};
ROVE_ON_FABRICS(Dependable);
// Each waits for some seconds until a bound of time is over.
class DependableInSeconds : public Dependable {};
ROVE_ON_FABRICS_WITH_ONE_SEED(DependableInSeconds);

TEST_P(Dependable, ACallRunsOnceWhoeverComesAndGoes) {
    while_others_come_and_go([&] {
        for (int i = 0; i < 50; ++i) EXPECT_EQ(peer().sync(fn<count_up>, 5000), i + 1);
    });
    EXPECT_EQ(runs, 50);
}

TEST_P(Dependable, CallsInPartsRunOnceWhoeverComesAndGoes) {
    const std::vector<char> bytes(1 << 20);
    while_others_come_and_go([&] {
        for (std::size_t i = 0; i < kNumbered; ++i) EXPECT_EQ(peer().sync(fn<take_numbered>, i, bytes), bytes.size());
    });
    for (std::size_t i = 0; i < kNumbered; ++i) EXPECT_EQ(runs_of[i], 1) << "call " << i;
}

// The function goes on with its payload where the link that brought it was lost and its peer met again.
TEST_P(Dependable, AFrameOutlivesTheLinkThatBroughtIt) {
    const std::vector<char> bytes(100'000, 1);
    auto late = peer().async(fn<sum_late>, std::span<const char>(bytes));
    ASSERT_TRUE(soon([] { return begun == 1; }));
    cut(peer());
    for (int i = 0; i < 20; ++i) EXPECT_EQ(peer().sync(fn<echo>, std::string(100'000, 'y')).size(), 100'000U);
    go_on = true;
    EXPECT_EQ(error_of([&] { late.get(); }).code(), ErrorCode::disconnected);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(peer().sync(fn<add>, i, 1), i + 1);
}

// Where its peer was met again while it ran, and nobody took the lead from it. The caller is a member: the server keeps its state of it from one
// link to the next. The two mailboxes are read to different places, so what is given back to the wrong one is noticed.
TEST_P(Dependable, AFrameIsGivenBackToItsOwnLinkAlone) {
    NodeOptions lone = options(true);
    lone.threads = 1;
    Node server(started(lone));
    NodeOptions joins = options(true);
    joins.join = server.address();
    Node member(started(joins));
    const Peer link = member.connect(server.address());
    const std::vector<char> bytes(100'000, 1);
    for (int i = 1; i <= 5; ++i) {
        if (i % 2 == 0) EXPECT_EQ(link.sync(fn<add>, 1, 2), 3);
        if (i % 2 == 1) cut(link);
        go_on = false;
        auto outer = link.async(fn<sum_late>, std::span<const char>(bytes));  // reads them where they arrived
        ASSERT_TRUE(soon([&] { return begun == i; }));
        cut(link);
        auto other = link.async(fn<add>, 3, 4);  // meets it again
        go_on = true;                            // soon: the last thread would take the lead
        ASSERT_TRUE(other.wait_for(20s)) << "its mailbox is read from the wrong place";
        EXPECT_EQ(other.get(), 7);
        EXPECT_EQ(error_of([&] { outer.get(); }).code(), ErrorCode::disconnected);
    }
}

// A function that waits for a call back is handed over after its peer was met again: the new link's mailbox is not its own.
int call_back_when_told(Here& here) {
    ++begun;
    while (!go_on) std::this_thread::sleep_for(1ms);
    return here.caller().sync(fn<add>, 1, 1);
}
TEST_P(Dependable, AHandOverTouchesNoOtherLink) {
    NodeOptions lone = options(true);
    lone.threads = 1;  // nobody takes the lead before the function waits
    Node server(started(lone));
    Node client(started(options()));
    const Peer link = client.connect(server.address());
    EXPECT_EQ(link.sync(fn<add>, 1, 2), 3);
    auto outer = link.async(fn<call_back_when_told>);
    ASSERT_TRUE(soon([] { return begun == 1; }));
    cut(link);
    auto other = link.async(fn<add>, 3, 4);
    go_on = true;
    EXPECT_EQ(other.get(), 7);
    EXPECT_EQ(error_of([&] { outer.get(); }).code(), ErrorCode::disconnected);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(link.sync(fn<add>, i, 1), i + 1);
}

TEST_P(Dependable, ThreadsThatFindALinkGoneShareOneMeeting) {
    for (int round = 0; round < 5; ++round) {
        EXPECT_EQ(peer().sync(fn<add>, 1, 2), 3);
        cut(peer());
        std::atomic<int> failed{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i)
            threads.emplace_back([&] {
                for (int call = 0; call < 20; ++call) try {
                        (void)peer().sync(fn<add>, call, 1);
                    } catch (const Error&) {
                        ++failed;
                    }
            });
        for (std::thread& each : threads) each.join();
        EXPECT_LE(failed, 1) << "only what was sent on the link that was cut may fail";
    }
}

TEST_P(Dependable, LargeResultsWaitForTheirCaller) {
    std::vector<Call<std::vector<char>>> calls;
    for (int i = 0; i < 4; ++i) calls.push_back(peer().async(fn<make>, std::uint64_t{20} << 20U));
    for (auto& call : calls) EXPECT_EQ(call.get().size(), std::size_t{20} << 20U);
}

// So many that are not large that they wait, too: functions answer faster than their caller takes the answers.
TEST_P(Dependable, ManyResultsWaitForTheirCaller) {
    constexpr std::size_t kBytes = 250'000;
    std::vector<Call<std::vector<char>>> calls;
    for (int i = 0; i < 1000; ++i) calls.push_back(peer().async(fn<make>, std::uint64_t{kBytes}));
    for (auto& call : calls) ASSERT_EQ(call.get().size(), kBytes);
}
// The same where the caller looks at nothing for a while, and has no thread that would.
TEST_P(Dependable, ManyResultsWaitForACallerThatDoesSomethingElse) {
    NodeOptions alone = options();
    alone.own_thread = false;
    Node client(started(alone));
    const Peer slow = client.connect(server_->address());
    std::vector<Call<std::vector<char>>> calls;
    made_bytes = 0;
    for (int i = 0; i < 500; ++i) calls.push_back(slow.async(fn<make>, std::uint64_t{250'000}));
    if (!GetParam().is_chaos())  // which sends the calls when their node is next awake
        EXPECT_TRUE(soon([] { return made_bytes > kBacklogBytes; })) << "as many as may wait";
    EXPECT_EQ(peer().sync(within(20s), fn<add>, 1, 2), 3) << "others are served while it runs";
    for (auto& call : calls) ASSERT_EQ(call.get().size(), 250'000U);
}

TEST_P(Dependable, LargeArgumentsOfManyThreadsWaitForOneAnother) {
    const std::vector<char> bytes(31 << 20);
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < 12; ++i)
        threads.emplace_back([&] { good += peer().sync(fn<take>, bytes) == bytes.size() ? 1 : 0; });
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(good, 12);
}

// A function that asks again and again whether its call has ended, and does nothing else.
bool poll_a_call(Here& here) {
    auto call = here.caller().async(fn<add>, 1, 1);
    for (const auto until = Clock::now() + 20s; Clock::now() < until;)
        if (call.wait_for(0ms)) return call.get() == 2;
    return false;
}
TEST_P(Dependable, AFunctionThatPollsKeepsNobodyOut) {
    for (const unsigned threads : {1U, 4U}) {
        NodeOptions listening = options(true);
        listening.threads = threads;
        Node server(started(listening));
        Node client(started(options()));
        const Peer link = client.connect(server.address());
        auto polling = link.async(fn<poll_a_call>);
        EXPECT_EQ(client.connect(server.address()).sync(fn<add>, 2, 3), 5);
        EXPECT_TRUE(polling.get());
    }
}

TEST_P(Dependable, LongPostsLeaveTheMailboxesServed) {
    for (int i = 0; i < 12; ++i) peer().post(fn<wait_until_told>);
    Node other(started(options()));
    const Peer link = other.connect(server_->address());
    for (int i = 0; i < 20; ++i) EXPECT_EQ(link.sync(fn<add>, i, 1), i + 1);
    go_on = true;
    EXPECT_TRUE(soon([] { return begun == 12; }));
    EXPECT_EQ(peer().sync(fn<add>, 1, 1), 2);
}

TEST_P(Dependable, ALongCallbackKeepsNobodyOut) {
    std::promise<void> entered;
    std::promise<int> ended;
    std::thread asks([&] {  // where the call has ended already the callback runs in the thread that asks for it
        peer().async(fn<add>, 1, 1).then([&](Call<int> call) {
            entered.set_value();
            while (!go_on) std::this_thread::sleep_for(1ms);
            ended.set_value(call.get());
        });
    });
    entered.get_future().wait();
    for (int i = 0; i < 5; ++i) EXPECT_EQ(peer().sync(fn<add>, i, 1), i + 1);
    go_on = true;
    EXPECT_EQ(ended.get_future().get(), 2);
    asks.join();
}

// One thread waits for a long call and leads; until it ends, another one's large argument needs room again and again.
TEST_P(Dependable, WhoWaitsForRoomIsWokenByRoom) {
    auto long_call = peer().async(fn<wait_until_told>);
    std::thread waiting([&] { long_call.get(); });
    const std::string text(4 << 20, 'x');
    EXPECT_EQ(peer().sync(fn<echo>, text).size(), text.size());
    go_on = true;
    waiting.join();
}

TEST_P(Dependable, AMessageNamesTheAddressAndTheReason) {
    auto lost = peer().async(fn<wait_until_told>);
    ASSERT_TRUE(soon([] { return begun == 1; }));
    cut(peer());
    const Error error = error_of([&] { lost.get(); });
    EXPECT_EQ(error.code(), ErrorCode::disconnected);
    EXPECT_NE(std::string(error.what()).find(server_->address()), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("cut by the test"), std::string::npos) << error.what();
}

// Functions that wait for what never comes do not keep their node. They are told at four fifths of its grace, and return then.
std::atomic<int> returned{0};
int wait_for_ever(Here& here) {
    struct Returns {
        ~Returns() { ++returned; }
    } const returns;
    ++begun;
    return here.caller().sync(fn<sum_late>, std::span<const char>()) != 0 ? 1 : 0;
}
TEST_P(DependableInSeconds, ANodeEndsWithinItsGraceWhateverItsFunctionsWaitFor) {
    for (const unsigned threads : {1U, 4U}) {
        begun = returned = 0;
        go_on = false;
        NodeOptions listening = options(true);
        listening.threads = threads;
        listening.grace = 5s;
        auto server = std::make_unique<Node>(started(listening));
        Node client(started(options()));
        const Peer link = client.connect(server->address());
        auto waiting = link.async(fn<wait_for_ever>);
        ASSERT_TRUE(soon([] { return begun == 2; }));  // here and there
        const auto begin = Clock::now();
        server.reset();
        EXPECT_EQ(returned, 1) << "the function was not told, but left to itself";
        EXPECT_LT(Clock::now() - begin, 30s);
        const Error error = error_of([&] { waiting.get(); });
        EXPECT_TRUE(error.code() == ErrorCode::disconnected || error.code() == ErrorCode::cancelled) << error.what();
        go_on = true;
    }
}

// A thread that waits for a call leads the node, and sleeps, when the node ends.
TEST_P(Dependable, WhoWaitsIsToldOfTheNodesEnd) {
    std::atomic<int> told{0};
    std::optional<Node> client(std::in_place, started(options()));
    const Peer link = client->connect(server_->address());
    std::vector<std::thread> waiting;
    for (int i = 0; i < 2; ++i)
        waiting.emplace_back([&] {
            const Error error = error_of([&] { link.sync(fn<wait_until_told>); });
            told += error.code() == ErrorCode::cancelled ? 1 : 0;
        });
    EXPECT_TRUE(soon([] { return begun == 2; }));
    std::this_thread::sleep_for(50ms);  // until it sleeps
    client.reset();
    const bool all_told = soon([&] { return told == 2; });
    EXPECT_TRUE(all_told);
    go_on = true;
    if (!all_told) std::_Exit(1);  // they would never end
    for (std::thread& each : waiting) each.join();
}

std::weak_ptr<NodeCore> core_of_ended;
void note_core(Here& here) {
    core_of_ended = here.raw()->node().weak_from_this();
}
TEST_P(Dependable, ANodeEndsWithoutAFunctionThatDoesNotReturn) {
    NodeOptions listening = options(true);
    listening.grace = 500ms;
    listening.log = "off";
    auto server = std::make_unique<Node>(started(listening));
    Node client(started(options()));
    const Peer link = client.connect(server->address());
    link.sync(fn<note_core>);
    link.post(fn<wait_until_told>);
    ASSERT_TRUE(soon([] { return begun == 1; }));
    const auto begin = Clock::now();
    server.reset();
    EXPECT_LT(Clock::now() - begin, 5s);
    EXPECT_FALSE(core_of_ended.expired()) << "the function returns into what is there no more";
}

// Holds a lock while it calls back, and what it calls has another function want that lock here.
std::timed_mutex lock_of_both;
void take_the_lock(int seconds) {
    ++begun;
    if (lock_of_both.try_lock_for(std::chrono::seconds(seconds))) {
        ++runs;
        lock_of_both.unlock();
    }
}
void post_back(Here& here, int seconds) {
    here.caller().post(fn<take_the_lock>, seconds);
    EXPECT_TRUE(soon([] { return begun == 1; }));
}
void call_back_locked(Here& here, int seconds) {
    const std::lock_guard lock(lock_of_both);
    here.caller().sync(fn<post_back>, seconds);
}
// Runs it until it is known to be short: others do not run on top of one that waits.
void make_known(const Peer& peer) {
    EXPECT_TRUE(soon([&] {
        begun = 0;
        peer.sync(fn<take_the_lock>, 0);
        return runs >= 3;
    }));
    begun = runs = 0;
}
TEST_P(Dependable, AFunctionMayHoldALockWhereNothingNests) {
    make_known(peer());
    peer().sync(no_nesting(fn<call_back_locked>), 20);
    EXPECT_TRUE(soon([] { return runs == 1; }));
}
TEST_P(DependableInSeconds, AFunctionThatWaitsForTheOneBeneathItIsReported) {
    for (const unsigned threads : {1U, 4U}) {  // with one nobody watches the leader
        begun = runs = 0;
        NodeOptions listening = options(true);
        listening.log = "warn";
        listening.threads = threads;
        Node server(started(listening));
        NodeOptions calling = options();
        calling.log = "warn";  // one setting for the process
        Node client(started(calling));
        const Peer link = client.connect(server.address());
        make_known(link);
        testing::internal::CaptureStderr();
        link.sync(fn<call_back_locked>, 7);
        const std::string said = testing::internal::GetCapturedStderr();
        EXPECT_EQ(runs, 0) << "it waited for the one beneath it";
        EXPECT_NE(said.find("deadlock"), std::string::npos) << threads << ": " << said;
        EXPECT_NE(said.find("rove::no_nesting"), std::string::npos) << threads << ": " << said;
    }
}

void wait_for_the_caller(Here& here) {
    here.caller().sync(fn<wait_until_told>);
}
void ask_the_caller(Here& here) {
    const Call<void> call = here.caller().async(fn<wait_until_told>);
    while (!call.done()) std::this_thread::sleep_for(1ms);
}
// It waits for a call as well.
TEST_P(DependableInSeconds, AFunctionThatAsksOnTopOfAnotherIsNotReported) {
    NodeOptions listening = options(true);
    listening.log = "warn";
    listening.threads = 1;
    Node server(started(listening));
    NodeOptions calling = options();
    calling.log = "warn";
    calling.threads = 2;
    Node client(started(calling));
    const Peer link = client.connect(server.address());
    go_on = true;
    link.sync(fn<ask_the_caller>);  // it is known to be short
    link.sync(fn<core_here>);
    Engine& engine = core_there.load()->first_engine();
    go_on = false;
    begun = 0;
    testing::internal::CaptureStderr();
    Call<void> beneath = link.async(fn<wait_for_the_caller>);
    EXPECT_TRUE(soon([] { return begun == 1; }));
    Call<void> asks = link.async(fn<ask_the_caller>);
    EXPECT_TRUE(soon([] { return begun == 2; }));
    EXPECT_TRUE(soon([&] {  // whoever looks for deadlocks notices it …
        engine.each_second();
        return EngineView::notices_long_runs(engine);
    }));
    EXPECT_TRUE(soon([&] { return !EngineView::notices_long_runs(engine); })) << "… until it asks again";
    go_on = true;
    asks.get();
    beneath.get();
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Payloads that have come and wait for a thread are no reason to cut their senders off.
TEST_P(Dependable, PayloadsThatWaitForAThreadMayDoSo) {
    NodeOptions listening = options(true);
    listening.threads = 2;
    Node server(started(listening));
    std::vector<std::unique_ptr<Node>> clients;
    std::vector<Call<std::size_t>> calls;
    const std::vector<char> bytes(31 << 20);
    for (int i = 0; i < 5; ++i) {
        clients.push_back(std::make_unique<Node>(started(options())));
        calls.push_back(clients.back()->connect(server.address()).async(fn<take_when_told>, bytes));
    }
    ASSERT_TRUE(soon([] { return begun >= 2; }));
    std::this_thread::sleep_for(200ms);  // the others are there, or on their way
    go_on = true;
    for (auto& call : calls) EXPECT_EQ(call.get(), bytes.size());
}

// Code, from a node to its client.
TEST_P(Dependable, AClientIsSentNoCode) {
    NodeOptions polled = options(true);
    polled.own_thread = false;
    Node hostile(started(polled));
    NodeOptions quiet = options();
    quiet.log = "off";
    Node client(started(quiet));
    const Peer link = client.connect(hostile.address());
    const auto answer = link.async(fn<core_here>);
    ASSERT_TRUE(soon([&] {
        hostile.poll();
        return begun == 1;
    }));
    NodeCore& core = *core_there;
    const std::shared_ptr<PeerState> to_client = EngineView::on_the_way_to(core.first_engine(), state(link)->my_id());
    ASSERT_TRUE(to_client);
    const wire::CodeChunk chunk{.item = 1, .total_bytes = 16};
    std::byte* frame = to_client->link()->reserve(fabric::Traffic::prompt, wire::kHeaderBytes + sizeof chunk + 16);
    ASSERT_NE(frame, nullptr);
    std::memcpy(frame + wire::kHeaderBytes, &chunk, sizeof chunk);
    std::memset(frame + wire::kHeaderBytes + sizeof chunk, 0, 16);
    to_client->link()->publish(fabric::Traffic::prompt, {.body_bytes = sizeof chunk + 16,
                                                         .extra_bytes = sizeof chunk,
                                                         .kind = wire::Kind::code,
                                                         .node = state(link)->my_id()});
    EXPECT_TRUE(soon([&] {
        hostile.poll();
        return state(link)->gone().find("a client takes none") != std::string::npos;
    }));
}

TEST_P(Dependable, TimeLimitsBoundSendingToo) {
    // A peer that takes nothing: its only thread is in a function.
    NodeOptions lone = options(true);
    lone.threads = 1;
    Node server(started(lone));
    Node client(started(options()));
    const Peer link = client.connect(server.address());
    EXPECT_EQ(link.sync(fn<add>, 1, 1), 2);
    link.post(fn<wait_until_told>);
    ASSERT_TRUE(soon([] { return begun == 1; }));
    const auto begin = Clock::now();
    const std::string text(8 << 20, 'x');  // more than the mailbox holds
    EXPECT_EQ(error_of([&] { (void)link.async(within(100ms), fn<echo>, text).get(); }).code(), ErrorCode::timed_out);
    EXPECT_LT(Clock::now() - begin, 5s);
    go_on = true;
    // What had come of it is given up there.
    for (int i = 0; i < 10; ++i) EXPECT_EQ(link.sync(fn<echo>, text).size(), text.size());
}

// Mappings and descriptors of this process.
std::size_t held() {
    std::size_t count = mailboxes_of(getpid());
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) count += each.path().empty() ? 0 : 1;
    return count;
}
// Threads that are in functions, or wait, keep no links of peers that have gone.
TEST_P(Dependable, NothingOfAPeerThatHasGoneIsKept) {
    auto long_call = peer().async(fn<wait_until_told>);
    std::thread waiting([&] { long_call.get(); });
    ASSERT_TRUE(soon([] { return begun == 1; }));
    const auto visit = [&] {
        Node other(started(options()));
        EXPECT_EQ(other.connect(server_->address()).sync(fn<add>, 1, 1), 2);
        EXPECT_EQ(peer().sync(fn<add>, 1, 1), 2);
    };
    for (int i = 0; i < 5; ++i) visit();
    std::size_t before = 0;
    EXPECT_TRUE(soon([&] { return std::exchange(before, held()) == before; }));
    for (int i = 0; i < 30; ++i) visit();
    EXPECT_TRUE(soon([&] { return held() <= before + 4; })) << before << " before, " << held() << " now";
    go_on = true;
    waiting.join();
}

TEST_P(Dependable, APeerThatNobodyKeepsIsForgotten) {
    NodeCore& core = *detail::Inside::core(peer());
    for (int i = 0; i < 20; ++i) {
        Node once(started(options(true)));
        EXPECT_EQ(node_->connect(once.address()).sync(fn<add>, i, 1), i + 1);
    }
    EXPECT_TRUE(soon([&] { return core.first_engine().peers().count() <= 2; })) << core.first_engine().peers().count();
}

}  // namespace
}  // namespace rove::test
