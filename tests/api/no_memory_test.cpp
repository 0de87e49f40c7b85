// Nodes that are refused memory, one allocation after the other: each call ends, and each node goes on.
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <limits>
#include <thread>
#include <vector>

#include "../lost_memory.hpp"
#include "../node/engine_view.hpp"
#include "../node/soon.hpp"
#include "../watched_new.hpp"
#include "engine/here.hpp"
#include "node/core.hpp"
#include "nodes.hpp"
#include "without_memory.hpp"

void rove::test::asked_for(std::size_t bytes) {
    if (others_refused && !is_spared) throw std::bad_alloc();
    if (!refused_here && (!counts_others || is_spared)) return;
    if (bytes >= too_much) throw std::bad_alloc();
    if (refused_in > 0 && refused_in.fetch_sub(1) == 1) {
        if (refused_from_there) too_much = 0;
        throw std::bad_alloc();
    }
}

namespace rove::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kNothingIsTooMuch = std::numeric_limits<std::size_t>::max();
constexpr auto kPatience = 20s;

class WithoutMemory : public testing::Test {
protected:
    void SetUp() override { (void)scratch(); }
    void TearDown() override {
        refused_here = is_spared = false;
        others_refused = counts_others = refused_from_there = false;
        refused_in = 0;
        too_much = kNothingIsTooMuch;
    }
    [[nodiscard]] static NodeOptions listening(const char* name) {
        return {.listen = "unix:" + (scratch() / name).string(), .log = "off"};
    }
};

int add(int a, int b) {
    return a + b;
}

// Allocations that one of a scene's steps makes at most.
constexpr int kAllocationsMax = 400;

// Does step() again and again, each time without one more allocation than before, until none is refused. step() sees to it that they are
// made on threads with `refused_here`.
template <typename Step>
void without_each_allocation(const Step& step) {
    int refused = 1;
    for (bool in_want = true; in_want && refused < kAllocationsMax; ++refused) {
        refused_in = refused;
        step();
        in_want = refused_in.exchange(0) <= 0;
        too_much = kNothingIsTooMuch;
        if (testing::Test::HasFailure()) {
            ADD_FAILURE() << "without the allocation " << refused;
            return;
        }
    }
    EXPECT_GT(refused, 2) << "it asks for some";
    EXPECT_LT(refused, kAllocationsMax);
}

std::atomic<NodeCore*> core_that_was_called{nullptr};
void note_core(Here& here) {
    core_that_was_called = &here.raw()->node();
}
NodeCore& core_behind(const Peer& peer) {
    peer.sync(within(kPatience), fn<note_core>);
    return *core_that_was_called;
}
std::size_t size_of_text(const std::string& text) {
    return text.size();
}

TEST_F(WithoutMemory, ANodeIsMadeOrNot) {
    constexpr int kMost = 400;  // that a node asks for as it starts
    const Node kept(listening("kept.sock"));
    int refused = 1;
    for (bool in_want = true; in_want && refused < kMost; ++refused) {
        refused_in = refused;
        refused_here = true;
        try {
            const Node node(NodeOptions{.log = "off"});
            in_want = refused_in.exchange(0) <= 0;
            refused_here = false;
        } catch (const std::exception&) {  // an Error, or std::bad_alloc
            refused_here = false;
        }
        refused_in = 0;
    }
    EXPECT_GT(refused, 10) << "it asks for some";
    EXPECT_LT(refused, kMost);
    Node next(NodeOptions{.log = "off"});
    EXPECT_EQ(next.connect(kept.address()).sync(fn<add>, 1, 2), 3);
}

void answers_much(Here& here) {
    static const std::vector<std::byte> much(20'000);
    refused_here = true;
    (void)rove_reply(here.raw(), much.data(), much.size());
    refused_here = false;
}

// More than the mailbox holds: answers wait in the outbox, for which there is no memory. The link is cut then.
TEST_F(WithoutMemory, AnAnswerThatHasToWaitCostsTheLinkAndNotTheNode) {
    Node server(listening("answers.sock"));
    NodeOptions takes_nothing{.log = "off"};
    takes_nothing.own_thread = false;
    Node client(takes_nothing);
    const Peer peer = client.connect(server.address());
    EXPECT_EQ(error_of([&] { peer.sync(fn<answers_much>); }).code(), ErrorCode::invalid)
        << "a result where none is wanted";
    too_much = 10'000;
    std::vector<Call<void>> calls;
    for (int i = 0; i < 200; ++i) calls.push_back(peer.async(fn<answers_much>));
    std::size_t failed = 0;
    for (Call<void>& call : calls) {
        ASSERT_TRUE(call.wait_for(kPatience));
        if (error_of([&] { call.get(); }).code() == ErrorCode::disconnected) ++failed;
    }
    too_much = kNothingIsTooMuch;
    EXPECT_GT(failed, 0U);
    EXPECT_LT(failed, calls.size());
    Node next(NodeOptions{.log = "off"});
    EXPECT_EQ(next.connect(server.address()).sync(fn<add>, 1, 2), 3);
}

std::atomic<int> staying{0};
void stay(int ms) {
    ++staying;
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}
void refuse_all_here() {
    refused_here = true;
    too_much = 1;
}

// And the node's end waits for nothing that is not there.
TEST_F(WithoutMemory, ALongFunctionBeginsAllTheSame) {
    auto server = std::make_unique<Node>(listening("long.sock"));
    Node client(NodeOptions{.log = "off"});
    const Peer peer = client.connect(server->address());
    for (int i = 0; i < 4; ++i) peer.sync(fn<stay>, 20);  // known to be long
    staying = 0;
    peer.post(fn<stay>, 1000);  // it takes the room that the list of such has
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (staying < 1 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
    peer.post(fn<refuse_all_here>);
    peer.post(fn<stay>, 50);
    std::this_thread::sleep_for(200ms);
    too_much = kNothingIsTooMuch;
    EXPECT_EQ(peer.sync(within(kPatience), fn<add>, 1, 2), 3);
    std::this_thread::sleep_for(1s);
    const auto begin = std::chrono::steady_clock::now();
    server.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s) << "of 5 s of grace";
}

std::atomic<bool> another_ran{false};
void run_another() {
    another_ran = true;
}
// While it runs there is no memory for anybody.
void stay_until_another_ran() {
    others_refused = true;
    (void)soon([] { return another_ran.load(); });
    others_refused = false;
}

// Whoever sees that it is long makes another thread lead.
TEST_F(WithoutMemory, AFunctionThatIsSeenToBeLongLosesTheLead) {
    is_spared = true;
    NodeOptions without_llvm = listening("seen.sock");  // which loses what it holds where memory is refused
    without_llvm.forms = Forms::image;
    const Node server(without_llvm);
    Node client(NodeOptions{.log = "off"});
    const Peer peer = client.connect(server.address());
    another_ran = true;
    peer.sync(fn<stay_until_another_ran>);  // both are known there
    peer.sync(fn<run_another>);
    another_ran = false;
    peer.post(fn<stay_until_another_ran>);
    peer.post(fn<run_another>);
    EXPECT_TRUE(soon([] { return another_ran && !others_refused; }));
}

// A process that answers hellos by hand.
class AnswersHellos {
public:
    AnswersHellos() : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
        path().copy(address.sun_path, sizeof address.sun_path - 1);
        EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(listener_, 4), 0);
    }
    ~AnswersHellos() { ::close(listener_); }
    [[nodiscard]] static std::string path() { return (scratch() / "hellos.sock").string(); }
    [[nodiscard]] int guest() const {
        const int guest = ::accept(listener_, nullptr, nullptr);
        char hello[64];
        EXPECT_GT(::recv(guest, hello, sizeof hello, 0), 0);
        return guest;
    }

private:
    const int listener_;
};

// While memory is refused the other side's answer comes: whoever waits is told, and so is whoever asks for that address next.
TEST_F(WithoutMemory, AMeetingEndsForAllWhoWaitForIt) {
    is_spared = true;
    const AnswersHellos there;
    NodeOptions options{.log = "off"};
    options.connect_timeout = 2s;
    Node client(options);
    const auto connects = [&] {
        return std::async(std::launch::async, [&] {
            is_spared = true;
            return error_of([&] { (void)client.connect("unix:" + AnswersHellos::path()); }).code();
        });
    };
    auto first = connects();
    const int guest = there.guest();
    auto second = connects();  // waits for the same meeting
    std::this_thread::sleep_for(100ms);
    others_refused = true;
    const std::string challenge = std::string("\x47\0\0\0\x03ROVE\x04", 10) + std::string(65, '\0');
    EXPECT_EQ(::send(guest, challenge.data(), challenge.size(), MSG_NOSIGNAL), static_cast<ssize_t>(challenge.size()));
    std::this_thread::sleep_for(300ms);
    others_refused = false;
    ::close(guest);
    for (auto* each : {&first, &second}) {
        ASSERT_EQ(each->wait_for(kPatience), std::future_status::ready);
        EXPECT_NE(each->get(), ErrorCode::ok);
    }
    auto next = connects();
    ::close(there.guest());
    ASSERT_EQ(next.wait_for(kPatience), std::future_status::ready);
    EXPECT_NE(next.get(), ErrorCode::ok);
}

std::atomic<bool> hops_end{false};
std::atomic<int> hops_begun{0};
void hop(Here& here) {
    if (here.node() == 0) return (void)rove_forward(here.raw(), 1, nullptr, 0);
    ++hops_begun;
    while (!hops_end) std::this_thread::sleep_for(1ms);
}

// The calls that were sent on to a node that goes: whichever allocation the leader is refused then, each of them ends.
TEST_F(WithoutMemory, CallsThatWereSentOnEndWithTheirNode) {
    constexpr int kMost = 400, kCalls = 12;
    NodeOptions driven = listening("first.sock");
    driven.own_thread = false;
    Node first(driven);
    std::atomic<bool> stop = false, refuse = false;
    std::thread drives([&] {
        while (!stop) {
            refused_here = refuse;
            try {
                (void)first.poll(1ms);
            } catch (const std::bad_alloc&) {
            }
        }
    });
    Node client(NodeOptions{.log = "off"});
    const Peer peer = client.connect(first.address());
    int refused = 1;
    for (bool in_want = true; in_want && refused < kMost; ++refused) {
        NodeOptions joins = listening("second.sock");
        joins.join = first.address();
        joins.threads = 2;
        joins.grace = 10ms;
        auto second = std::make_unique<Node>(joins);
        hops_end = true;
        peer.sync(within(kPatience), fn<hop>);
        hops_end = false;
        hops_begun = 0;
        std::vector<Call<void>> calls;
        for (int i = 0; i < kCalls; ++i) calls.push_back(peer.async(fn<hop>));
        const auto until = std::chrono::steady_clock::now() + kPatience;
        while (hops_begun < 2 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
        refused_in = refused;
        refuse = true;
        std::thread ends([&] { second.reset(); });
        const auto given_up = std::chrono::steady_clock::now() + kPatience;
        std::size_t ended = 0;
        for (Call<void>& call : calls) {
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(given_up - std::chrono::steady_clock::now());
            if (call.wait_for(std::max(left, 1ms))) ++ended;
        }
        EXPECT_EQ(ended, calls.size()) << "without the allocation " << refused;
        refuse = false;
        in_want = refused_in.exchange(0) <= 0;
        hops_end = true;
        ends.join();
        if (HasFailure()) break;
    }
    EXPECT_GT(refused, 10) << "it asks for some";
    EXPECT_LT(refused, kMost);
    stop = true;
    first.wake();
    drives.join();
}

// Of a payload in parts that a node has no memory for: the next ones have all the room that there was.
TEST_F(WithoutMemory, RoomForALargePayloadIsGivenBack) {
    Driven server(listening("room.sock"));
    Node client(NodeOptions{.log = "off"});
    const Peer peer = client.connect(server.node().address());
    NodeCore& core = core_behind(peer);
    const std::string text(300'000, 'x');
    EXPECT_EQ(peer.sync(within(kPatience), fn<size_of_text>, text), text.size());
    without_each_allocation([&] {
        server.refuse(true);
        try {
            (void)peer.sync(within(kPatience), fn<size_of_text>, text);
        } catch (const Error&) {  // the link was cut
        }
        server.refuse(false);
        EXPECT_TRUE(soon([&core] { return EngineView::staged_bytes(core.first_engine()) == 0; }))
            << EngineView::staged_bytes(core.first_engine());
    });
}

// A call that fails while its payload is on its way there: what has come of that is forgotten.
TEST_F(WithoutMemory, AHalfSentPayloadIsTakenBack) {
    Driven server(listening("half.sock"));
    Node client(NodeOptions{.log = "off"});
    const Peer peer = client.connect(server.node().address());
    NodeCore& core = core_behind(peer);
    EXPECT_EQ(peer.sync(within(kPatience), fn<size_of_text>, std::string(300'000, 'x')), 300'000U);
    const std::string text(4'000'000, 'x');  // more than the mailbox holds
    for (const bool all : {false, true}) {
        refused_from_there = all;
        without_each_allocation([&] {
            server.pause(true);
            refused_here = true;
            try {
                (void)peer.async(within(50ms), fn<size_of_text>, text);
                ADD_FAILURE() << "there was no room for it";
            } catch (const std::exception&) {  // an Error, or std::bad_alloc
            }
            refused_here = false;
            too_much = kNothingIsTooMuch;
            server.pause(false);
            EXPECT_EQ(peer.sync(within(kPatience), fn<add>, 1, 2), 3);
            EXPECT_TRUE(soon([&core] { return EngineView::staged_bytes(core.first_engine()) == 0; }))
                << EngineView::staged_bytes(core.first_engine());
        });
    }
}

// The first call of a function takes its code along, and is remembered with it. Whichever allocation that is refused: where the caller is
// told that the call was not made, it does not run.
TEST_F(WithoutMemory, AFirstCallThatIsNotMadeDoesNotRun) {
    const Package package = Package::open(test::package("basics.c"));
    const Entry count = package.entry("count");
    // Of a full mailbox the rest takes the call, and not the bitcode that is sent after it.
    for (const bool full : {false, true})
        without_each_allocation([&] {
            NodeOptions compiles_nothing = listening("first_call.sock");
            compiles_nothing.forms = Forms::image;
            Driven server(compiles_nothing);  // which has no code yet
            NodeOptions lone{.log = "off"};
            lone.own_thread = false;
            Node caller(lone);
            const Peer peer = caller.connect(server.node().address());
            server.pause(true);
            try {
                while (full) peer.limited(within(10ms)).deliver(std::vector<std::byte>(4000));
            } catch (const Error&) {  // there is no room for one more
            }
            std::optional<RawCall> call;
            refused_here = true;
            try {
                call.emplace(peer.call(count, {}));
            } catch (const std::exception&) {  // an Error, or std::bad_alloc
            }
            refused_here = false;
            server.pause(false);
            if (call) (void)call->get();
            const auto bytes = peer.call(count, {}).get();  // after it: calls of one peer begin in their order
            long now = 0;
            std::memcpy(&now, bytes.data(), sizeof now);
            EXPECT_EQ(now, call ? 2 : 1);
        });
}

// Of no use to the node that it is sent on to: it only takes room there.
void fill_mailbox(Here& here) {
    const std::vector<std::byte> much(32 * 1024);
    if (here.node() == 0) (void)rove_forward(here.raw(), 1, much.data(), much.size());
}

// A link to a member is cut, which lives: the calls that it has taken are answered as soon as the two have met again, whichever allocation
// the leader is refused when it cleans up.
TEST_F(WithoutMemory, WhatAMemberHasTakenIsAnsweredAfterACut) {
    constexpr int kCalls = 2;
    Driven first(listening("cut_first.sock"));
    NodeOptions joins = listening("cut_second.sock");
    joins.join = first.node().address();
    joins.threads = kCalls + 2;
    const Node second(joins);
    Node client(NodeOptions{.log = "off"});
    const Peer peer = client.connect(first.node().address());
    NodeCore& core = core_behind(peer);
    hops_end = true;
    for (int i = 0; i < 5; ++i) peer.sync(within(kPatience), fn<hop>);
    without_each_allocation([&] {
        std::shared_ptr<PeerState> member;
        ASSERT_TRUE(soon([&] {
            auto linked = core.first_engine().peers().linked(1);
            if (linked) member = *linked;
            return linked.has_value();
        }));
        hops_end = false;
        hops_begun = 0;
        std::vector<Call<void>> calls;
        for (int i = 0; i < kCalls; ++i) calls.push_back(peer.async(within(kPatience), fn<hop>));
        ASSERT_TRUE(soon([] { return hops_begun == kCalls; }));
        // The mailbox goes round, so that the first node knows that both were taken.
        for (int i = 0; i < 100; ++i) (void)error_of([&] { peer.sync(within(kPatience), fn<fill_mailbox>); });
        const std::uint64_t meeting = member->meeting();
        first.refuse(true);
        {
            const Hold hold(core.first_engine().lock());
            member->link()->break_with(Error(ErrorCode::overloaded, "cut by the test"));
        }
        first.node().wake();
        EXPECT_TRUE(soon([&] { return member->meeting() != meeting; }));
        first.refuse(false);
        hops_end = true;
        for (Call<void>& call : calls) {
            std::string error;
            try {
                call.get();
            } catch (const Error& failed) {
                error = failed.what();
            }
            EXPECT_EQ(error, "");
        }
    });
}

// A client comes and ends. Whichever allocation the node's control thread was refused, nothing is left of it.
TEST_F(WithoutMemory, AClientThatHasGoneIsNotKept) {
    is_spared = true;
    NodeOptions without_llvm = listening("gone.sock");  // whose threads are refused nothing
    without_llvm.forms = Forms::image;
    Driven server(without_llvm, true);
    NodeCore* core = nullptr;
    {
        Node client(NodeOptions{.log = "off"});
        core = &core_behind(client.connect(server.node().address()));
    }
    ASSERT_TRUE(soon([&] { return core->first_engine().peers().count() == 0; }));
    counts_others = true;
    without_each_allocation([&] {
        (void)run({rove(), "functions", server.node().address(), "--timeout", "1"}, kPatience);
        EXPECT_TRUE(soon([&] { return core->first_engine().peers().count() == 0; }))
            << core->first_engine().peers().count();
    });
}

void note_caller(Here& here) {
    here.caller().sync(within(kPatience), fn<note_core>);
}

// A node is met by one that cannot: whichever allocation the control thread is refused, that one keeps no link to it that nobody watches.
TEST_F(WithoutMemory, ANodeThatWasNotMetIsNotKept) {
    llvm_loses_memory = true;  // it may still read this program's code
    is_spared = true;
    Driven server(listening("notes.sock"), true);
    const NodeProcess there({}, "unix:" + (scratch() / "there.sock").string());
    {  // this program's code is read once, by a thread of its own
        Node reads(NodeOptions{.log = "off"});
        (void)error_of([&] { reads.connect(there.address()).sync(within(kPatience), fn<add>, 1, 2); });
    }
    without_each_allocation([&] {
        Driven client(NodeOptions{.log = "off"}, true);
        const int refused = refused_in.exchange(0);
        client.node().connect(server.node().address()).sync(within(kPatience), fn<note_caller>);
        NodeCore& core = *core_that_was_called;
        ASSERT_TRUE(soon([&] { return core.first_engine().peers().count() == 1; }));
        refused_in = refused;
        counts_others = true;
        std::size_t known = 2;
        try {
            (void)client.node().connect(there.address());
        } catch (const std::exception&) {  // an Error, or std::bad_alloc
            known = 1;
        }
        counts_others = false;
        EXPECT_TRUE(soon([&] { return core.first_engine().peers().count() <= known; }))
            << core.first_engine().peers().count();
    });
}

// This thread is refused everything.
class RefusedAll {
public:
    RefusedAll() {
        too_much = 0;
        refused_here = true;
    }
    ~RefusedAll() {
        refused_here = false;
        too_much = kNothingIsTooMuch;
    }
    RefusedAll(const RefusedAll&) = delete;
};

constexpr const char* kLong = "words that are longer than a string keeps in itself";

int fails(Here& here) {
    const RefusedAll all;
    return rove_fail_as(here.raw(), ROVE_INVALID, kLong);
}
int cannot_send(Here& here) {
    const RefusedAll all;
    return rove_fail_unsent(here.raw(), ROVE_OVERLOADED, 5);
}
int finds_no_object(Here& here) {
    const RefusedAll all;
    return rove_object(here.raw(), kLong, kLong) == nullptr ? rove_last_failure()->error : -1;
}
int finds_no_buffer(Here& here) {
    const RefusedAll all;
    void* at = nullptr;
    return rove_buffer_at(here.raw(), 123, 0, 1000, &at);
}
// A function's end and its questions, without any memory: each gets an error, and the process lives.
TEST_F(WithoutMemory, WhatAFunctionAsksTheNodeForFails) {
    is_spared = true;
    Driven server(listening("asks.sock"));
    Node client(NodeOptions{.log = "off"});
    const Peer peer = client.connect(server.node().address());
    EXPECT_EQ(peer.sync(within(kPatience), fn<add>, 1, 2), 3);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(peer.sync(within(kPatience), fn<fails>), ROVE_OVERLOADED);
        EXPECT_EQ(peer.sync(within(kPatience), fn<cannot_send>), ROVE_OVERLOADED);
        EXPECT_EQ(peer.sync(within(kPatience), fn<finds_no_object>), ROVE_OVERLOADED);
        EXPECT_EQ(peer.sync(within(kPatience), fn<finds_no_buffer>), ROVE_OVERLOADED);
    }
    EXPECT_EQ(peer.sync(within(kPatience), fn<add>, 3, 4), 7);
}

}  // namespace
}  // namespace rove::test
