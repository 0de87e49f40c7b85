// The lead: who has it while functions run long, what it leaves alone, and who is woken.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "../api/nodes.hpp"
#include "api/access.hpp"
#include "engine/here.hpp"
#include "engine_view.hpp"
#include "node/core.hpp"
#include "one_engine.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// Until a flag is set, but no longer than that. True: it is.
bool await(const std::atomic<bool>& flag, milliseconds limit) {
    const auto until = Clock::now() + limit;
    while (!flag && Clock::now() < until) std::this_thread::sleep_for(milliseconds(1));
    return flag;
}

class Lead : public OnFabrics {
protected:
    void SetUp() override {
        NodeOptions options = this->options(true);
        options.threads = 3;
        server_ = std::make_unique<Node>(started(options));
        node_ = std::make_unique<Node>(started(this->options()));
        peer_ = std::make_unique<Peer>(node_->connect(server_->address()));
    }
};
ROVE_ON_FABRICS(Lead);

std::atomic<bool> echoed;
// Reads its argument, which stays in the mailbox, late.
std::uint64_t late_sum(std::span<const std::uint8_t> data) {
    (void)await(echoed, seconds(1));
    return std::accumulate(data.begin(), data.end(), std::uint64_t{0});
}
void sleep_ms(int ms) {
    std::this_thread::sleep_for(milliseconds(ms));
}
std::size_t echo(std::span<const std::uint8_t> data) {
    return data.size();
}

// The frame of a function that was handed over stays where it is, however much the others' frames want the room.
TEST_P(Lead, AFrameIsHeldWhileItsFunctionRuns) {
    echoed = false;
    const std::vector<std::uint8_t> ones(100 * 1024, 1), noise(64 * 1024, 0xFF);
    EXPECT_EQ(peer().sync(fn<echo>, std::span(noise)), noise.size());
    Call<std::uint64_t> sum = peer().async(fn<late_sum>, std::span(ones));
    std::thread others([&] {
        for (int i = 0; i < 32; ++i) EXPECT_EQ(peer().sync(fn<echo>, std::span(noise)), noise.size());
        echoed = true;
    });
    EXPECT_EQ(sum.get(), ones.size());
    others.join();
}

std::atomic<bool> answered;
template <int kWhich>
bool until_answered() {
    return await(answered, seconds(10));
}

// Each thread that takes the lead from a long function leaves another one on watch, as long as there is one.
TEST_P(Lead, ASecondLongFunctionLosesTheLeadToo) {
    answered = false;
    Node third(started(options()));
    const Peer other = third.connect(server_->address());
    EXPECT_EQ(other.sync(fn<echo>, std::span<const std::uint8_t>()), 0U);
    Call<bool> first = peer().async(fn<until_answered<1>>), second = peer().async(fn<until_answered<2>>);
    Call<std::size_t> quick = other.async(fn<echo>, std::span<const std::uint8_t>());
    EXPECT_TRUE(quick.wait_for(seconds(8))) << "it waits for the long ones";
    answered = true;
    EXPECT_TRUE(first.get());
    EXPECT_TRUE(second.get());
    EXPECT_EQ(quick.get(), 0U);
}

// Whether it counts as long where it begins; long: it runs until it does.
bool counts_as_long(Here& here, bool be_long) {
    const code::Pace& pace = here.raw()->function->pace;
    const bool was = pace.is_long();
    for (const auto until = Clock::now() + seconds(10); be_long && !pace.is_long() && Clock::now() < until;)
        std::this_thread::yield();
    return was;
}

// A function is handed over in advance as long as it runs long, and no longer.
TEST_P(Lead, AFunctionThatIsShortAgainIsNoLongerHandedOver) {
    EXPECT_FALSE(peer().sync(fn<counts_as_long>, true));
    EXPECT_TRUE(peer().sync(fn<counts_as_long>, false)) << "it did not lose the lead";
    // The call may have been descheduled for as long as a long function runs: then the next one tells.
    bool is_long = true;
    for (const auto until = Clock::now() + seconds(10); is_long && Clock::now() < until;)
        is_long = peer().sync(fn<counts_as_long>, false);
    EXPECT_FALSE(is_long);
}

std::atomic<bool> begun, link_gone;
std::atomic<std::uint64_t> summed;
void sum_when_the_link_is_gone(std::span<const std::uint8_t> data) {
    begun = true;
    (void)await(link_gone, seconds(20));
    summed = std::accumulate(data.begin(), data.end(), std::uint64_t{0});
}
void post_it_back(Here& here) {
    const std::vector<std::uint8_t> ones(100 * 1024, 1);
    here.caller().post(fn<sum_when_the_link_is_gone>, std::span(ones));
}
void nothing() {}

// A function keeps the mailbox that its frame is in, also where its thread cannot hand the lead over and another one finds that
// the peer has died.
TEST_P(Lead, AFrameOutlivesItsLink) {
    begun = link_gone = false;
    summed = 0;
    NodeOptions options = this->options(true);
    options.threads = 1;
    Node survivor(started(options));
    auto doomed = std::make_unique<Node>(started(this->options(true)));
    const Peer peer = survivor.connect(doomed->address());
    peer.post(fn<post_it_back>);
    ASSERT_TRUE(await(begun, seconds(20)));
    doomed.reset();
    const auto says_that_it_is_gone = [&peer] {
        try {
            peer.post(fn<nothing>);
            return false;
        } catch (const Error&) {
            return true;
        }
    };
    for (const auto until = Clock::now() + seconds(20); !says_that_it_is_gone() && Clock::now() < until;)
        std::this_thread::sleep_for(milliseconds(1));
    link_gone = true;
    for (const auto until = Clock::now() + seconds(20); summed == 0 && Clock::now() < until;)
        std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(summed, 100U * 1024);
}

std::atomic<int> runs;
std::atomic<bool> somebody_came;
int run_while_somebody_comes() {
    ++runs;
    begun = true;
    (void)await(somebody_came, seconds(20));
    return runs;
}

// The frame of a function that has run is given back, whatever other peers did while it ran.
TEST_P(Lead, AFrameRunsOnceWhoeverComesAndGoes) {
    begun = somebody_came = false;
    runs = 0;
    NodeOptions options = this->options(true);
    options.threads = 1;
    Node server(started(options));
    const Peer peer = node_->connect(server.address());
    Call<int> call = peer.async(fn<run_while_somebody_comes>);
    ASSERT_TRUE(await(begun, seconds(20)));
    {
        Node other(started(this->options()));
        (void)other.connect(server.address());
    }
    somebody_came = true;
    EXPECT_EQ(call.get(), 1);
    peer.sync(fn<nothing>);
    EXPECT_EQ(runs, 1);
}

std::atomic<bool> may_leave, may_come;
void until_may_leave() {
    (void)await(may_leave, seconds(20));
}
void until_may_come() {
    (void)await(may_come, seconds(20));
}

// A thread that leads while it waits, and waits no longer, wakes one that waits too: the node has no thread of its own.
TEST_P(Lead, WhoWaitsNoLongerLeavesTheLeadToWhoDoes) {
    may_leave = may_come = false;
    NodeOptions options = this->options();
    options.own_thread = false;
    Node client(started(options));
    const Peer peer = client.connect(server_->address());
    Engine& engine = detail::Inside::core(peer)->first_engine();
    Call<void> leads = peer.async(fn<until_may_leave>);
    std::atomic<bool> came{false};
    std::thread other([&] {
        EXPECT_TRUE(soon([&] { return EngineView::has_lead(engine, 0, 0); }));  // so that it finds somebody who leads
        peer.sync(fn<until_may_come>);
        came = true;
    });
    std::thread lets_leave([&] {
        EXPECT_TRUE(soon([&] { return EngineView::has_lead(engine, 1, 0); }));
        may_leave = true;
    });
    leads.get();  // leads until the other one waits
    lets_leave.join();
    may_come = true;
    EXPECT_TRUE(await(came, seconds(10))) << "nobody leads";
    peer.sync(fn<nothing>);  // leads, whatever was wrong
    other.join();
}

void nap() {
    std::this_thread::sleep_for(milliseconds(2));
}

TEST_P(Lead, AWakeThatComesBeforeThePollEndsIt) {
    Node node(started({.own_thread = false, .log = "off"}));
    node.wake();
    const auto start = Clock::now();
    (void)node.poll(seconds(20));
    EXPECT_LT(Clock::now() - start, seconds(10));
}

// It does not come back at once, again and again, while the other thread works.
TEST_P(Lead, APollWaitsWhileAnotherThreadLeads) {
    NodeOptions none = options();
    none.own_thread = false;
    Node node(started(none));
    const Peer peer = node.connect(server_->address());
    std::atomic<bool> done{false};
    std::thread leads([&] {
        peer.sync(fn<sleep_ms>, 1000);
        done = true;
    });
    std::this_thread::sleep_for(milliseconds(50));
    int polls = 0;
    for (; !done; ++polls) (void)node.poll(milliseconds(100));
    leads.join();
    EXPECT_LT(polls, 100) << "ten fill the second";
}

// A poll of several engines looks at each once in a millisecond.
class LeadOfOneEngine : public Lead {};
ROVE_ON_THESE_FABRICS(LeadOfOneEngine, kFabricsWithOneEngine);

// A program whose main thread polls while one of the node's own threads leads.
TEST_P(LeadOfOneEngine, APollOfAnIdleNodeRests) {
    EXPECT_EQ(peer().sync(fn<echo>, std::vector<std::uint8_t>(10)), 10U);
    const auto switches = [] {
        rusage usage{};
        getrusage(RUSAGE_THREAD, &usage);
        return usage.ru_nvcsw;
    };
    EXPECT_TRUE(soon([&] {
        const long before = switches();
        (void)server_->poll(seconds(1));
        return switches() - before < 20;
    })) << "it looks at the other thread again and again";
    std::thread wakes([this] {
        std::this_thread::sleep_for(milliseconds(100));
        server_->wake();
    });
    const auto begin = Clock::now();
    (void)server_->poll(seconds(60));
    EXPECT_LT(Clock::now() - begin, seconds(30)) << "woken while it rested";
    wakes.join();
}

// The other thread leads for as long as the callback lasts that it runs.
TEST_P(Lead, AWakeEndsAPollWhileAnotherThreadLeads) {
    NodeOptions none = options();
    none.own_thread = false;
    Node node(started(none));
    const Peer peer = node.connect(server_->address());
    std::atomic<bool> leads{false}, may_end{false};
    peer.async(fn<sleep_ms>, 0).then([&](const Call<void>& /*ended*/) {
        leads = true;
        (void)await(may_end, seconds(60));
    });
    std::thread leader([&] {
        while (!may_end) (void)node.poll(milliseconds(10));
    });
    EXPECT_TRUE(await(leads, seconds(20)));
    const auto poll_takes = [&node] {
        const auto begin = Clock::now();
        (void)node.poll(seconds(20));
        return Clock::now() - begin;
    };
    node.wake();
    EXPECT_LT(poll_takes(), seconds(10)) << "woken before it waited";
    std::thread wakes([&] {
        std::this_thread::sleep_for(milliseconds(100));
        node.wake();
    });
    EXPECT_LT(poll_takes(), seconds(10)) << "woken while it waited";
    wakes.join();
    may_end = true;
    leader.join();
}

// A thread that waits for a call takes the lead from the node's own, which sleeps, and may be asleep itself before that one has
// woken: then the wake-up was for two. If it reached one of them only, the node would be deaf once that one is gone.
TEST_P(Lead, WhoLostTheLeadAsleepIsWoken) {
    NodeOptions options = this->options(true);
    options.waiting = Waiting::frugal;  // asleep as often as can be
    options.threads = 1;
    Node both(started(options)), caller(started(this->options()));
    const Peer out = both.connect(server_->address()), in = caller.connect(both.address());
    for (int round = 0; round < 300; ++round) {
        out.sync(fn<nap>);
        Call<std::size_t> call = in.async(fn<echo>, std::span<const std::uint8_t>());
        ASSERT_TRUE(call.wait_for(seconds(10))) << "nobody serves after round " << round;
        std::this_thread::sleep_for(milliseconds(1));  // its own thread sleeps again
    }
}

}  // namespace
}  // namespace rove::test
