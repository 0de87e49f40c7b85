// Functions that wait quietly, more of them than a node has threads: others are served nevertheless, and what they wait for may be a
// call of their own node.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <list>
#include <thread>

#include "../api/nodes.hpp"
#include "engine/here.hpp"
#include "engine_view.hpp"
#include "node/core.hpp"
#include "node/options.hpp"
#include "one_engine.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

std::atomic<int> begun{0};
std::atomic<bool> gate_is_open{false};

void wait_at_gate() {
    ++begun;
    while (!gate_is_open) std::this_thread::sleep_for(1ms);
}
void wait_quietly(Here& here) {
    NoNesting quiet;
    here.caller().sync(fn<wait_at_gate>);
}
int answer() {
    return 1;
}
int ask_back(Here& here) {
    ++begun;
    while (!gate_is_open) std::this_thread::sleep_for(1ms);
    return here.caller().sync(fn<answer>);
}
std::atomic<NodeCore*> core_of_server{nullptr};
int wait_quietly_for_a_callback(Here& here) {
    core_of_server = &here.raw()->node();
    NoNesting quiet;
    return here.caller().sync(fn<ask_back>);
}
int wait_quietly_if(Here& here, bool waits) {
    return waits ? wait_quietly_for_a_callback(here) : 1;
}
void take_time() {
    std::this_thread::sleep_for(2 * code::Pace::kShort);
}
void stay() {
    ++begun;
    while (!gate_is_open) std::this_thread::sleep_for(1ms);
}
std::string much() {
    ++begun;
    return std::string(8 << 20, 'm');
}

class QuietWaits : public OnFabrics {
protected:
    static constexpr unsigned kThreads = 2;
    // More than run functions side by side there: kThreads, and two that serve.
    static constexpr unsigned kMore = 3 * (kThreads + 2);

    void SetUp() override {
        begun = 0;
        gate_is_open = false;
        NodeOptions few = options(true);
        few.threads = kThreads;
        server_ = std::make_unique<Node>(started(few));
        NodeOptions wide = options();
        wide.threads = kThreadsMax;  // what is called back stays on a thread of its own
        node_ = std::make_unique<Node>(started(wide));
        peer_ = std::make_unique<Peer>(node_->connect(server_->address()));
        others_ = std::make_unique<Node>(started(options()));
        other_ = std::make_unique<Peer>(others_->connect(server_->address()));
    }
    void TearDown() override {
        gate_is_open = true;
        other_.reset();
        others_.reset();
        OnFabrics::TearDown();
    }
    template <typename Each>
    void all(std::vector<Each>& calls, std::chrono::seconds patience = 30s) {
        const auto until = std::chrono::steady_clock::now() + patience;
        for (auto& each : calls) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
            ASSERT_TRUE(each.wait_for(std::max(left, 1ms))) << "it waits for ever";
        }
    }
    void expect_served() {
        RawCall ping = other_->ping();
        EXPECT_TRUE(ping.wait_for(10s)) << "nobody takes calls";
        Call<int> call = other_->async(fn<answer>);
        EXPECT_TRUE(call.wait_for(10s)) << "nobody runs functions";
    }

    std::unique_ptr<Node> others_;
    std::unique_ptr<Peer> other_;
};
ROVE_ON_FABRICS(QuietWaits);

TEST_P(QuietWaits, MoreThanThereAreThreadsKeepNobodyOut) {
    std::vector<Call<void>> calls;
    for (unsigned i = 0; i < kMore; ++i) calls.push_back(peer().async(fn<wait_quietly>));
    ASSERT_TRUE(soon([] { return begun == static_cast<int>(kMore); })) << begun;
    expect_served();
    gate_is_open = true;
    all(calls);
}

TEST_P(QuietWaits, MoreThanThereAreThreadsWaitForCallsOfTheirOwnNode) {
    std::vector<Call<int>> calls;
    for (unsigned i = 0; i < kMore; ++i) calls.push_back(peer().async(fn<wait_quietly_for_a_callback>));
    ASSERT_TRUE(soon([] { return begun == static_cast<int>(kMore); })) << begun;
    gate_is_open = true;
    all(calls);
    for (auto& each : calls) EXPECT_EQ(each.get(), 1);
}

// The functions that run long have their threads as ever beside those that wait quietly.
TEST_P(QuietWaits, LongFunctionsBesideThemKeepNobodyOut) {
    std::vector<Call<void>> calls;
    for (unsigned i = 0; i < kMore; ++i) calls.push_back(peer().async(fn<wait_quietly>));
    ASSERT_TRUE(soon([] { return begun == static_cast<int>(kMore); })) << begun;
    for (unsigned i = 0; i < 2 * kThreads; ++i) calls.push_back(peer().async(fn<stay>));
    ASSERT_TRUE(soon([] { return begun >= static_cast<int>(kMore + kThreads); })) << begun;
    expect_served();
    gate_is_open = true;
    all(calls);
}

// A peer that takes nothing: the functions that reply to it with more than its mailbox holds wait for room, quietly.
TEST_P(QuietWaits, LargeRepliesToOneThatHasStoppedKeepNobodyOut) {
    NodeOptions deaf = options();
    deaf.own_thread = false;
    Node stopped(started(deaf));
    const Peer link = stopped.connect(server_->address());
    EXPECT_EQ(link.sync(fn<answer>), 1);
    std::vector<Call<std::string>> calls;
    for (unsigned i = 0; i < kMore; ++i) calls.push_back(link.async(fn<much>));
    // It polls until its calls have arrived: a stream has gathered them, and chaos carries them piece by piece.
    ASSERT_TRUE(soon([&stopped] {
        (void)stopped.poll(0ms);
        return begun == static_cast<int>(kMore);
    })) << begun;
    expect_served();
    all(calls);
    for (auto& each : calls) EXPECT_EQ(each.get().size(), std::size_t{8} << 20);
}

template <int>
void wait_quietly_as(Here& here) {
    wait_quietly(here);
}
template <int>
std::string give(std::size_t bytes) {
    return std::string(bytes, 'g');
}
// Of that many functions each is called for the first time, or has been short until now: none is known for what it will do.
constexpr int kKinds = 60;
template <typename Each>
void for_each_kind(const Each& each) {
    [&]<int... kind>(std::integer_sequence<int, kind...>) {
        (each(std::integral_constant<int, kind>{}), ...);
    }(std::make_integer_sequence<int, kKinds>{});
}
std::size_t threads_of_this_process() {
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(threads), end(threads)));
}

TEST_P(QuietWaits, FunctionsThatNothingIsKnownOfHaveNoThreadEach) {
    const std::size_t before = threads_of_this_process();
    std::vector<Call<void>> calls;
    for_each_kind([&](auto kind) { calls.push_back(peer().async(fn<wait_quietly_as<kind>>)); });
    ASSERT_TRUE(soon([] { return begun >= static_cast<int>(kQuietRunsOfPeerMax); })) << begun;
    expect_served();
    constexpr unsigned kMost = kQuietRunsOfPeerMax + kThreads + 2;
    EXPECT_FALSE(soon([] { return begun > static_cast<int>(kMost); }, 1s));
    EXPECT_LE(threads_of_this_process(), before + kMost);
    gate_is_open = true;
    all(calls);
    EXPECT_EQ(begun, kKinds);
}

TEST_P(QuietWaits, LargeResultsOfFunctionsThatWereShortHaveNoThreadEach) {
    NodeOptions deaf = options();
    deaf.own_thread = false;
    Node stopped(started(deaf));
    const Peer link = stopped.connect(server_->address());
    for_each_kind([&](auto kind) { EXPECT_EQ(link.sync(fn<give<kind>>, 1).size(), 1U); });
    const std::size_t before = threads_of_this_process();
    std::vector<Call<std::string>> calls;
    for_each_kind([&](auto kind) { calls.push_back(link.async(fn<give<kind>>, std::size_t{2} << 20)); });
    (void)stopped.poll(0ms);  // sends what a stream has gathered
    expect_served();
    // 16 and 4, and whatever else began.
    EXPECT_FALSE(soon([before] { return threads_of_this_process() >= before + kKinds / 2; }, 1s));
    all(calls, 60s);
    for (auto& each : calls) EXPECT_EQ(each.get().size(), std::size_t{2} << 20);
    expect_served();
}

// Beyond the bound they wait in their mailboxes, and end with an error where nothing goes on: what is behind them comes then.
class ManyQuietWaits : public QuietWaits {
protected:
    struct Client {
        Node node;
        Peer peer;
        std::vector<Call<int>> calls{};
    };
    void SetUp() override {
        QuietWaits::SetUp();
        gate_is_open = true;
        EXPECT_EQ(peer().sync(fn<wait_quietly_for_a_callback>), 1);  // it is known to wait quietly from here on
        gate_is_open = false;
        begun = 0;
    }
    // One that has as many of them called as may wait for it, and `more`.
    void begin_all(unsigned more) {
        NodeOptions wide = options();
        wide.threads = kQuietRunsOfPeerMax;  // what is called back stays on a thread of its own
        auto node = started(wide);
        auto peer = node.connect(server_->address());
        Client& client = clients_.emplace_back(std::move(node), std::move(peer));
        const int before = begun;
        const auto call = [&client](unsigned times) {
            for (; times > 0; --times) client.calls.push_back(client.peer.async(fn<wait_quietly_for_a_callback>));
        };
        call(kQuietRunsOfPeerMax);
        ASSERT_TRUE(soon([before] { return begun >= before + static_cast<int>(kQuietRunsOfPeerMax); })) << begun;
        expect_waiting(clients_.size() * kQuietRunsOfPeerMax);
        call(
            more);  // not before: one that begins while the last of the others is not waiting yet has a place beyond these
    }
    // What they call back may begin before they wait for it.
    static void expect_waiting(std::size_t count) {
        ASSERT_TRUE(soon([count] { return EngineView::quiet_runs(core_of_server.load()->first_engine()) == count; }))
            << EngineView::quiet_runs(core_of_server.load()->first_engine());
    }
    static unsigned refused(std::vector<Call<int>>& calls) {
        unsigned count = 0;
        for (auto& each : calls) {
            try {
                EXPECT_EQ(each.get(), 1);
            } catch (const Error& error) {
                ++count;
                EXPECT_EQ(error.code(), ErrorCode::overloaded) << error.what();
            }
        }
        return count;
    }
    void TearDown() override {
        gate_is_open = true;
        clients_.clear();
        QuietWaits::TearDown();
    }
    std::list<Client> clients_;
};

// Those who are refused wait for ten seconds first.
class RefusedQuietWaits : public ManyQuietWaits {};
ROVE_ON_FABRICS_WITH_ONE_SEED(RefusedQuietWaits);

TEST_P(RefusedQuietWaits, BeyondTheShareOfTheirPeerTheyAreRefusedAndOthersBegin) {
    constexpr unsigned kMoreThanMay = 10;
    begin_all(kMoreThanMay);
    expect_served();
    Call<int> of_another = peer().async(fn<wait_quietly_for_a_callback>);
    ASSERT_TRUE(soon([] { return begun > static_cast<int>(kQuietRunsOfPeerMax); }))
        << "one peer holds all of another's";
    expect_waiting(kQuietRunsOfPeerMax + 1);
    auto& calls = clients_.front().calls;
    const auto answered = [&calls] { return std::ranges::count_if(calls, [](auto& each) { return each.done(); }); };
    ASSERT_TRUE(soon([&] { return answered() == kMoreThanMay; }, 30s)) << "what cannot begin waits for ever";
    EXPECT_EQ(begun, static_cast<int>(kQuietRunsOfPeerMax) + 1);
    gate_is_open = true;
    EXPECT_EQ(refused(calls), kMoreThanMay);
    EXPECT_EQ(of_another.get(), 1);
    expect_waiting(0);  // their answers come before they have ended, and nothing has changed for 10 s until they have
    EXPECT_EQ(clients_.front().peer.sync(fn<wait_quietly_for_a_callback>), 1)
        << "they come again once others have ended";
}

TEST_P(RefusedQuietWaits, BeyondThoseOfAllEachPeerHasOne) {
    for (unsigned n = 0; n < kQuietRunsMax; n += kQuietRunsOfPeerMax) begin_all(0);
    expect_served();
    Call<int> first = peer().async(fn<wait_quietly_for_a_callback>);
    ASSERT_TRUE(soon([] { return begun > static_cast<int>(kQuietRunsMax); })) << "four peers keep a fifth out";
    expect_waiting(kQuietRunsMax + 1);
    Call<int> more = peer().async(fn<wait_quietly_for_a_callback>);
    ASSERT_TRUE(more.wait_for(30s)) << "it waits for ever";
    EXPECT_EQ(error_of([&] { (void)more.get(); }).code(), ErrorCode::overloaded);
    EXPECT_EQ(begun, static_cast<int>(kQuietRunsMax) + 1);
    gate_is_open = true;
    for (Client& each : clients_) EXPECT_EQ(refused(each.calls), 0U);
    EXPECT_EQ(first.get(), 1);
    expect_waiting(0);
    EXPECT_EQ(peer().sync(fn<wait_quietly_for_a_callback>), 1) << "they come again once others have ended";
}

// They look at the node's engine, or count its places.
class ManyQuietWaitsOfOneEngine : public ManyQuietWaits {};
ROVE_ON_THESE_FABRICS(ManyQuietWaitsOfOneEngine, kFabricsWithOneEngine);

TEST_P(ManyQuietWaitsOfOneEngine, OneThatDidNotWaitLastBeginsBesideThem) {
    gate_is_open = true;
    EXPECT_EQ(peer().sync(fn<wait_quietly_if>, true), 1);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(peer().sync(fn<wait_quietly_if>, false), 1);  // one of them is short
    gate_is_open = false;
    begin_all(0);
    EXPECT_EQ(clients_.front().peer.sync(within(8s), fn<wait_quietly_if>, false), 1);
}

// Which the others may be waiting for.
TEST_P(ManyQuietWaitsOfOneEngine, OneThatTookLongAndDidNotWaitBeginsBesideThem) {
    peer().sync(fn<take_time>);
    begin_all(0);
    EXPECT_NO_THROW(clients_.front().peer.sync(within(8s), fn<take_time>));
}

}  // namespace
}  // namespace rove::test
