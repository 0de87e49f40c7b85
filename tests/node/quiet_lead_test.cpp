// Threads that wait quietly leave the lead to those that take calls as well, and have it where none of those is left.
#include <atomic>
#include <thread>

#include "../api/nodes.hpp"
#include "api/access.hpp"
#include "engine/here.hpp"
#include "engine_view.hpp"
#include "node/core.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

constexpr int kRounds = 20;
std::atomic<bool> may_begin, holds, may_end;

void hold() {
    holds = true;
    (void)soon([] { return may_end.load(); });
}
// The first call's: has its caller's leader held up in a function, and replies during that.
void begins(Here& here) {
    (void)soon([] { return may_begin.load(); });
    here.caller().post(fn<hold>);
    (void)soon([] { return holds.load(); });
}
void replies_meanwhile() {
    (void)soon([] { return holds.load(); });
}
void replies_later() {
    (void)soon([] { return holds.load(); });
    std::this_thread::sleep_for(10ms);  // the others' replies are there
    may_end = true;
    std::this_thread::sleep_for(20ms);
}

// The leader finds another one's reply beside its own. That one is told that the lead is free and does not want it any more, and a quiet
// one may have looked before: then it is told again.
TEST(QuietLead, IsNotForgottenByWhoDoesNotWantIt) {
    (void)scratch();
    NodeOptions serves;
    serves.listen = "127.0.0.1:0";
    serves.log = "error";
    serves.threads = 4;  // each of these functions keeps one
    Node server(serves);
    NodeOptions own;
    own.log = "error";
    own.own_thread = false;
    own.threads = 1;  // it ends a function before another thread leads
    Node client(own);
    const Peer peer = client.connect(server.address());
    for (int round = 0; round < kRounds; ++round) {
        may_begin = holds = may_end = false;
        Call<void> first = peer.async(fn<begins>), second = peer.async(fn<replies_meanwhile>),
                   quiet = peer.async(fn<replies_later>);
        bool answered = false;
        const auto is_led = [&peer](int waiting, int quiet) {
            return soon(
                [&] { return EngineView::has_lead(detail::Inside::core(peer)->first_engine(), waiting, quiet); });
        };
        std::thread leads([&] { first.get(); });
        EXPECT_TRUE(is_led(0, 0));
        std::thread waits_quietly([&] {
            const NoNesting scope;
            answered = quiet.wait_for(20s);
        });
        EXPECT_TRUE(is_led(1, 1));
        std::thread waits([&] { second.get(); });
        EXPECT_TRUE(is_led(2, 1));
        may_begin = true;
        for (std::thread* each : {&leads, &waits, &waits_quietly}) each->join();
        ASSERT_TRUE(answered) << "in round " << round << ": nobody leads";
    }
}

void nap() {
    std::this_thread::sleep_for(300ms);
}
void nothing() {}

// Whoever asks, and does not wait, leads for one step: no callback runs on top of what it holds.
TEST(QuietLead, RunsNothingWhereItOnlyAsks) {
    (void)scratch();
    NodeOptions serves;
    serves.listen = "127.0.0.1:0";
    serves.log = "error";
    Node server(serves);
    Node client({.own_thread = false, .log = "error"});
    const Peer peer = client.connect(server.address());
    peer.sync(fn<nap>);
    std::atomic<bool> runs_here{false};
    peer.async(fn<nothing>).then([&](const Call<void>& /*ended*/) { runs_here = true; });
    Call<void> call = peer.async(fn<nap>);
    {
        const NoNesting scope;
        while (!call.done()) std::this_thread::sleep_for(1ms);
        EXPECT_FALSE(runs_here);
    }
    EXPECT_TRUE(soon([&] {
        (void)client.poll();
        return runs_here.load();
    }));
}

void wait_until_told() {
    (void)soon([] { return may_end.load(); });
}
// A thread waits for the lead by then.
void wait_for_what_comes_at_once(Here& here) {
    NodeCore& core = here.raw()->node();
    holds = true;
    EXPECT_TRUE(soon([&core] { return EngineView::has_lead(core.first_engine(), 1, 0); }));
    EngineView::wait_for_what_comes_at_once(core.first_engine());
}

// A function that was to wait hands the lead over, and need not wait any more when it looks again.
TEST(QuietLead, IsNotLostByWhoNeedNotWaitAfterAll) {
    (void)scratch();
    NodeOptions serves{.listen = "127.0.0.1:0", .threads = 1};  // nobody takes the lead from a function
    Node server(serves);
    const Node other(NodeOptions{.listen = "127.0.0.1:0"});
    const Peer to_other = server.connect(other.address());
    Node client;
    const Peer peer = client.connect(server.address());
    holds = may_end = false;
    Call<void> waits_at_once = peer.async(fn<wait_for_what_comes_at_once>);
    (void)soon([] { return holds.load(); });
    std::thread waits([&] { to_other.sync(fn<wait_until_told>); });
    waits_at_once.get();
    EXPECT_NO_THROW(peer.sync(within(10s), fn<nothing>));
    may_end = true;
    waits.join();
}

}  // namespace
}  // namespace rove::test
