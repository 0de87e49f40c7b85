// The lead is somebody's whatever the others are in: who takes it from a long function where no follower is left.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "../api/nodes.hpp"
#include "engine/here.hpp"
#include "one_engine.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::atomic<int> begun{0}, staying{0};
std::atomic<bool> go_on{false}, hop_goes_on{false}, gate_is_open{false};

int add(int a, int b) {
    return a + b;
}
void wait_until_told() {
    ++begun;
    while (!go_on) std::this_thread::sleep_for(1ms);
}
void have_the_caller_wait(Here& here) {
    here.caller().sync(fn<wait_until_told>);
}
// Long enough to lose the lead, and then in a wait. The caller may be gone by the end.
void nap_and_ask(Here& here) {
    ++begun;
    std::this_thread::sleep_for(20ms);
    try {
        here.caller().sync(fn<add>, 1, 2);
    } catch (const Error&) {
    }
}
void wait_at_gate() {
    while (!gate_is_open) std::this_thread::sleep_for(1ms);
}
void nap_ask_and_stay(Here& here) {
    ++begun;
    std::this_thread::sleep_for(20ms);
    here.peer(1).sync(fn<wait_at_gate>);
    ++staying;
    while (!go_on) std::this_thread::sleep_for(1ms);
}
// On node 0 it sends itself on to node 1.
void hop(Here& here) {
    if (here.node() == 0) {
        (void)rove_forward(here.raw(), 1, nullptr, 0);
        return;
    }
    ++begun;
    while (!hop_goes_on) std::this_thread::sleep_for(1ms);
}

// Another thread of the node runs the function that it calls here, and this one leads, and sleeps, when that one answers.
void begin_and_wait_at_gate() {
    ++begun;
    wait_at_gate();
}
void have_another_thread_wait(Here& here) {
    Call<void> gate = here.peer(here.node()).async(fn<begin_and_wait_at_gate>);
    while (begun == 0) std::this_thread::sleep_for(1ms);
    ++staying;
    gate.get();
}

void open_gate_late() {
    std::this_thread::sleep_for(200ms);
    gate_is_open = true;
}
void ask_and_wait_later(Here& here) {
    Call<void> gate = here.caller().async(fn<wait_at_gate>);
    ++begun;
    while (!hop_goes_on) std::this_thread::sleep_for(1ms);
    gate.get();
}

class StandingBy : public OnFabrics {
protected:
    void SetUp() override {
        begun = staying = 0;
        go_on = hop_goes_on = gate_is_open = false;
        OnFabrics::SetUp();
    }
    void TearDown() override {
        go_on = hop_goes_on = gate_is_open = true;
        OnFabrics::TearDown();
    }
    [[nodiscard]] NodeOptions without_threads() const {
        NodeOptions none = options();
        none.own_thread = false;
        return none;
    }
};
ROVE_ON_FABRICS(StandingBy);

// A program without threads of the node's own: one of its threads runs the function that came, another one waits for a call.
TEST_P(StandingBy, AThreadThatWaitsTakesTheLeadFromALongFunction) {
    Node client(started(without_threads()));
    const Peer link = client.connect(server_->address());
    EXPECT_EQ(link.sync(fn<add>, 1, 2), 3);
    std::thread other([&] { link.sync(fn<have_the_caller_wait>); });
    ASSERT_TRUE(soon([] { return begun == 1; }));
    auto answer = std::async(std::launch::async, [&] { return link.sync(fn<add>, 3, 4); });
    EXPECT_EQ(answer.wait_for(10s), std::future_status::ready) << "nobody serves";
    go_on = true;
    EXPECT_EQ(answer.get(), 7);
    other.join();
}

// The same where the leader is in a callback, and where time limits end what others wait for.
TEST_P(StandingBy, AThreadThatWaitsTakesTheLeadFromALongCallback) {
    Node client(started(without_threads()));
    const Peer link = client.connect(server_->address());
    EXPECT_EQ(link.sync(fn<add>, 1, 2), 3);
    link.async(fn<add>, 1, 2).then([](Call<int>) { wait_until_told(); });
    std::thread other([&] {
        while (begun == 0) client.poll(1ms);
    });
    ASSERT_TRUE(soon([] { return begun == 1; }));
    auto limited = std::async(std::launch::async,
                              [&] { return error_of([&] { link.sync(within(200ms), fn<wait_until_told>); }).code(); });
    EXPECT_EQ(limited.wait_for(10s), std::future_status::ready) << "nobody looks at the clock";
    go_on = true;
    EXPECT_EQ(limited.get(), ErrorCode::timed_out);
    other.join();
}

// All threads of a node are in functions that wait, and one of them runs another one on top, which is long.
TEST_P(StandingBy, FunctionsThatWaitKeepWatch) {
    NodeOptions few = options(true);
    few.threads = 2;
    Node server(started(few));
    Node deaf(started(without_threads())), poster(started(options())), caller(started(options()));
    const Peer from_deaf = deaf.connect(server.address()), from_poster = poster.connect(server.address()),
               from_caller = caller.connect(server.address());
    EXPECT_EQ(from_caller.sync(fn<add>, 1, 2), 3);
    for (int i = 0; i < 4; ++i) {
        from_deaf.post(fn<nap_and_ask>);
        // It may take more than one turn until the post is there. What is asked after the nap is not answered.
        ASSERT_TRUE(soon([&] {
            if (begun == i) deaf.poll();
            return begun == i + 1;
        }));
        std::this_thread::sleep_for(50ms);  // it waits by now
    }
    from_poster.post(fn<wait_until_told>);
    ASSERT_TRUE(soon([] { return begun == 5; }));
    Call<int> call = from_caller.async(fn<add>, 3, 4);
    EXPECT_TRUE(call.wait_for(10s)) << "nobody serves";
    go_on = true;
    EXPECT_EQ(call.get(), 7);
}

// A call ends by a thread that does not lead, and the leader itself waits for that.
TEST_P(StandingBy, ALeaderThatSleepsIsWokenByAnEndThatAnotherThreadBrings) {
    Call<void> call = peer().async(fn<have_another_thread_wait>);
    ASSERT_TRUE(soon([] { return staying == 1; }));
    std::this_thread::sleep_for(200ms);  // it sleeps by now
    gate_is_open = true;
    EXPECT_TRUE(call.wait_for(10s)) << "its thread sleeps on";
}

// They look at the node's engine, or count its places.
class StandingByOfOneEngine : public StandingBy {};
ROVE_ON_THESE_FABRICS(StandingByOfOneEngine, kFabricsWithOneEngine);

// A call waits for a place among the functions that run long, and one of these leaves its own by a wait while the leader sleeps.
TEST_P(StandingByOfOneEngine, AFunctionThatBeginsToWaitMakesRoomForAnother) {
    NodeOptions few = options(true);
    few.threads = 2;
    Node server(started(few));
    Node poster(started(options())), caller(started(options())), opener(started(options()));
    const Peer from_poster = poster.connect(server.address()), from_caller = caller.connect(server.address()),
               from_opener = opener.connect(server.address());
    for (int i = 0; i < 3; ++i)
        from_opener.sync(fn<open_gate_late>);  // it is known to run long, and is not tried again
    gate_is_open = false;
    from_poster.post(fn<wait_until_told>);
    from_caller.post(fn<ask_and_wait_later>);
    ASSERT_TRUE(soon([] { return begun == 2; }));
    std::thread leads([&] { server.connect(server_->address()).sync(fn<wait_at_gate>); });
    std::this_thread::sleep_for(100ms);
    from_opener.post(fn<open_gate_late>);
    std::this_thread::sleep_for(500ms);
    EXPECT_FALSE(gate_is_open) << "there was a place for it";
    hop_goes_on = true;
    EXPECT_TRUE(soon([] { return gate_is_open.load(); }));
    gate_is_open = go_on = true;
    leads.join();
}

// All threads of a node that run functions are in some that do not wait any more: replies to others pass nevertheless.
TEST_P(StandingBy, RepliesPassWhereAllThreadsRunFunctions) {
    NodeOptions few = options(true);
    few.threads = 2;
    Node first(started(few));
    NodeOptions joining = options(true);
    joining.join = first.address();
    joining.threads = 16;
    Node second(started(joining));
    ASSERT_TRUE(soon([&] { return first.node_count() == 2; }));
    Node poster(started(options())), caller(started(options()));
    const Peer from_poster = poster.connect(first.address()), from_caller = caller.connect(first.address());
    hop_goes_on = true;
    caller.connect(second.address()).sync(fn<hop>);  // it knows the function from here on
    hop_goes_on = false;
    begun = 0;
    Call<void> hopping = from_caller.async(fn<hop>);
    ASSERT_TRUE(soon([] { return begun == 1; }));
    for (int i = 0; i < 4; ++i) {
        from_poster.post(fn<nap_ask_and_stay>);
        ASSERT_TRUE(soon([&] { return begun == i + 2; }));
        std::this_thread::sleep_for(50ms);  // it waits by now
    }
    gate_is_open = true;
    EXPECT_TRUE(soon([] { return staying == 4; }));
    hop_goes_on = true;
    EXPECT_TRUE(hopping.wait_for(10s)) << "nobody serves";
    go_on = true;
    hopping.get();
}

}  // namespace
}  // namespace rove::test
