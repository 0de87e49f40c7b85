// Calls allocate no memory. And a node that is refused memory keeps serving.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../watched_new.hpp"
#include "nodes.hpp"

namespace {
std::atomic<bool> counting{false};
std::atomic<std::size_t> allocations{0};
// Only the threads that a call passes through are counted: a node's compiler thread may warm itself up while they run.
thread_local bool on_the_way = false;
// The same threads are refused this much and more.
std::atomic<std::size_t> too_much{std::numeric_limits<std::size_t>::max()};
// Counts down with each of their allocations: the one that makes it 0 is refused. 0: none is.
std::atomic<unsigned> refused_in{0};
// The same, with every thread's.
std::atomic<int> refused_to_any_in{0};
// Those of all threads, ever.
std::atomic<std::size_t> asked{0};
}  // namespace

void rove::test::asked_for(std::size_t bytes) {
    asked.fetch_add(1, std::memory_order_relaxed);
    if (refused_to_any_in > 0 && refused_to_any_in.fetch_sub(1) == 1) throw std::bad_alloc();
    if (on_the_way && bytes >= too_much) throw std::bad_alloc();
    if (on_the_way && refused_in > 0 && --refused_in == 0) throw std::bad_alloc();
    if (on_the_way && counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}

namespace rove::test {

using Result = std::array<char, 64>;
Result sixty_four(int n) {
    on_the_way = true;
    Result result{};
    result[0] = static_cast<char>(n);
    return result;
}

class Allocations : public OnFabrics {};
// Not on chaos, which allocates for each frame that it carries.
INSTANTIATE_TEST_SUITE_P(Fabrics, Allocations, testing::Values(kLoopback, kShm), fabric_name);

// Client and node are both in this process: the function marks its thread, the test its own.
TEST_P(Allocations, NonePerCallForResultsOfUpTo64Bytes) {
    on_the_way = true;
    for (int i = 0; i < 1000; ++i) (void)peer().sync(fn<sixty_four>, i);
    counting = true;
    for (int i = 0; i < 1000; ++i) {
        const Result result = peer().sync(fn<sixty_four>, i);
        if (result[0] != static_cast<char>(i)) std::abort();
    }
    counting = false;
    const std::size_t sync = allocations.exchange(0);
    EXPECT_LT(sync, 10U) << "in 1000 calls";  // housekeeping may, a few times a second
    counting = true;
    for (int i = 0; i < 1000; ++i) {
        Call<Result> call = peer().async(fn<sixty_four>, i);
        (void)call.get();
    }
    counting = false;
    EXPECT_LT(allocations.load(), 10U) << "in 1000 calls";
}

// A node in this process whose only thread is refused large memory.
class NoMemory : public testing::Test {
protected:
    NoMemory() : server({.listen = "unix:" + (scratch() / "no_memory.sock").string(), .threads = 2, .log = "off"}) {}
    ~NoMemory() override { too_much = std::numeric_limits<std::size_t>::max(); }
    // Those that serve, two at a time: each of the two is kept there until the other one is.
    void mark_threads(const Peer& peer);

    Node server;
    Node client{NodeOptions{.log = "off"}};
};

std::atomic<int> marked{0};
void mark() {
    on_the_way = true;
    ++marked;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (marked < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

bool is_marked() {
    return on_the_way;
}

void NoMemory::mark_threads(const Peer& peer) {
    for (int round = 0; round == 0 || (round < 50 && !peer.sync(fn<is_marked>));
         ++round) {  // one more thread leads by then
        marked = 0;
        Call<void> one = peer.async(fn<mark>), other = peer.async(fn<mark>);
        one.get();
        other.get();
        ASSERT_EQ(marked, 2);
    }
}

std::size_t sum_long(std::span<const unsigned char> values) {
    if (values.size() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return std::accumulate(values.begin(), values.end(), std::size_t{0});
}

TEST_F(NoMemory, AFunctionThatRunsLongReadsItsArgumentsWhereTheyAre) {
    const Peer peer = client.connect(server.address());
    mark_threads(peer);
    for (int i = 0; i < 3; ++i) (void)peer.sync(fn<sum_long>, std::vector<unsigned char>(1));
    too_much = 10'000;
    const std::vector<unsigned char> values(20'000, 1);
    EXPECT_EQ(peer.sync(fn<sum_long>, values), 20'000U);
    EXPECT_EQ(peer.sync(fn<sum_long>, values), 20'000U);
}

std::size_t sum_here(Here& /*here*/, std::span<const unsigned char> values) {
    return std::accumulate(values.begin(), values.end(), std::size_t{0});
}

TEST_F(NoMemory, AFunctionThatMayCallReadsItsViewsWhereTheyAre) {
    const Peer peer = client.connect(server.address());
    mark_threads(peer);
    const std::vector<unsigned char> values(20'000, 1);
    EXPECT_EQ(peer.sync(fn<sum_here>, values), 20'000U);
    too_much = 10'000;
    EXPECT_EQ(peer.sync(fn<sum_here>, values), 20'000U);
}

TEST_F(NoMemory, ACallerIsToldInAnError) {
    const Peer peer = client.connect(server.address());
    EXPECT_EQ(peer.sync(fn<sum_long>, std::vector<unsigned char>(3, 2)), 6U);
    std::vector<Call<std::size_t>> calls;
    calls.reserve(1000);
    on_the_way = true;
    too_much = 2'000;
    const Error why = error_of([&] {
        while (calls.size() < 1000) calls.push_back(peer.async(fn<sum_long>, std::vector<unsigned char>(3, 2)));
    });
    too_much = std::numeric_limits<std::size_t>::max();
    on_the_way = false;
    EXPECT_EQ(why.code(), ErrorCode::overloaded) << why.message();
    EXPECT_NE(why.message().find("no memory"), std::string::npos) << why.message();
    for (Call<std::size_t>& each : calls) EXPECT_EQ(each.get(), 6U);
    EXPECT_EQ(peer.sync(fn<sum_long>, std::vector<unsigned char>(3, 2)), 6U);
}

struct AtOnce {
    static void run(Work work) { work(); }
};

TEST_F(NoMemory, ACallThatCannotBeKeptForAnotherThreadFails) {
    const Peer peer = client.connect(server.address());
    mark_threads(peer);
    EXPECT_EQ(peer.sync(run_by<AtOnce>(fn<sum_long>), std::vector<unsigned char>(3, 2)), 6U);
    too_much = 10'000;
    const Error why = error_of([&] {
        (void)peer.sync(within(std::chrono::seconds(20)), run_by<AtOnce>(fn<sum_long>),
                        std::vector<unsigned char>(20'000));
    });
    EXPECT_EQ(why.code(), ErrorCode::failed) << why.message();
}

TEST_F(NoMemory, CostsTheLinkWhoseCodeAskedForIt) {
    const Package package = Package::open(test::package("basics.c"));
    const Peer peer = client.connect(server.address());
    mark_threads(peer);
    too_much = 512;
    const Error why = error_of([&] { (void)peer.call(package.entry("echo")).get(); });
    EXPECT_EQ(why.code(), ErrorCode::disconnected);
    EXPECT_NE(why.message().find("has no memory for what"), std::string::npos) << why.message();
    too_much = std::numeric_limits<std::size_t>::max();
    EXPECT_EQ(client.connect(server.address()).sync(fn<sum_long>, std::vector<unsigned char>(3, 2)), 6U);
}

// Until no thread has asked for memory for a while: LLVM, which may still warm itself up, ends the process where it gets none.
void await_silence() {
    std::size_t before = 0;
    do {
        before = asked;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    } while (before != asked);
}

// Whoever comes when there is none, the next one is let in.
TEST_F(NoMemory, OneThatCannotBeLetInKeepsNobodyElseOut) {
    const std::string path = server.address().substr(std::string_view("unix:").size());
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    client.connect(server.address()).sync(fn<sixty_four>, 1);  // what is made with a program's first call is there
    await_silence();
    for (int refused = 1; refused <= 12; ++refused) {
        const int guest = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        refused_to_any_in = refused;
        ASSERT_EQ(::connect(guest, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        refused_to_any_in = 0;
        ::close(guest);
        Node next(NodeOptions{.log = "off"});
        EXPECT_NO_THROW(next.connect(server.address()).sync(fn<sixty_four>, 1)) << refused;
    }
}

// A client whose thread is this one.
class NoMemoryHere : public NoMemory {
protected:
    ~NoMemoryHere() override { on_the_way = false; }
    static NodeOptions lone() {
        NodeOptions options{.log = "off"};
        options.own_thread = false;
        return options;
    }
    Node caller{lone()};
    Peer link = caller.connect(server.address());
};

TEST_F(NoMemoryHere, AResultThatFindsNoneIsNoSuccess) {
    const Package package = Package::open(test::package("basics.c"));
    const std::vector<std::byte> bytes(20'000);
    EXPECT_EQ(link.call(package.entry("echo"), bytes).get().size(), bytes.size());
    RawCall call = link.call(package.entry("echo"), bytes);
    on_the_way = true;
    too_much = bytes.size() / 2;
    const Error why = error_of([&] { (void)call.get(); });
    too_much = std::numeric_limits<std::size_t>::max();
    on_the_way = false;
    EXPECT_EQ(why.code(), ErrorCode::failed) << why.message();
    EXPECT_NE(why.message().find("no memory"), std::string::npos) << why.message();
    EXPECT_EQ(link.call(package.entry("echo"), bytes).get().size(), bytes.size()) << "it cost that call alone";
}

std::atomic<int> ran{0};
void count_run() {
    ++ran;
}

TEST_F(NoMemoryHere, ACallThatIsNotMadeForItDoesNotRun) {
    constexpr unsigned kMost = 64;  // that a call asks for
    link.sync(fn<count_run>);
    unsigned refused = 1;
    for (bool in_want = true; in_want && refused < kMost; ++refused) {
        const int before = ran;
        bool made = false;
        on_the_way = true;
        refused_in = refused;
        try {
            Call<void> call = link.async(within(std::chrono::seconds(20)), fn<count_run>);
            made = true;
            in_want = refused_in.exchange(0) == 0;
            call.get();
        } catch (const Error& error) {
            EXPECT_TRUE(!made || error.code() == ErrorCode::timed_out) << error.message();
        } catch (const std::bad_alloc&) {
            EXPECT_FALSE(made);
        }
        refused_in = 0;
        on_the_way = false;
        link.sync(fn<sixty_four>, 1);  // behind it
        if (!made) EXPECT_EQ(ran, before) << "without the allocation " << refused;
    }
    EXPECT_GT(refused, 2U) << "it asks for some";
    EXPECT_LT(refused, kMost);
}

void rest() {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

// Whoever waits for one node's answer finds another one gone, and no memory for what that takes.
TEST_F(NoMemoryHere, WhatALostPeerTakesCostsNoOtherCall) {
    constexpr unsigned kMost = 100;  // that it asks for
    link.sync(fn<rest>);
    unsigned refused = 1;
    // On a busy machine the call may end before the node does: then the same is tried again.
    for (unsigned unasked = 0; unasked < 3 && refused < kMost;) {
        auto other = std::make_unique<Node>(
            NodeOptions{.listen = "unix:" + (scratch() / "goes.sock").string(), .threads = 1, .log = "off"});
        const Peer goes = caller.connect(other->address());
        goes.sync(fn<count_run>);
        Call<void> call = link.async(within(std::chrono::seconds(20)), fn<rest>);
        std::thread ends([&other] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            other.reset();
        });
        on_the_way = true;
        refused_in = refused;
        EXPECT_NO_THROW(call.get()) << "without the allocation " << refused;
        const bool in_want = refused_in.exchange(0) == 0;
        on_the_way = false;
        ends.join();
        EXPECT_NO_THROW(link.sync(within(std::chrono::seconds(20)), fn<count_run>)) << refused;
        const Error why = error_of([&] { goes.sync(within(std::chrono::seconds(20)), fn<count_run>); });
        EXPECT_EQ(why.code(), ErrorCode::disconnected) << refused << ": " << why.message();
        unasked = in_want ? 0 : unasked + 1;
        refused += in_want ? 1 : 0;
    }
    EXPECT_GT(refused, 2U) << "it asks for some";
    EXPECT_LT(refused, kMost);
}

}  // namespace rove::test
