// Many functions and callbacks that wait in one thread, one on top of the other: only so many do, and nobody is refused for that where
// other threads can run what comes.
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "../api/nodes.hpp"
#include "api/access.hpp"
#include "engine_view.hpp"
#include "lead/stacked_wait.hpp"
#include "node/core.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

std::atomic<bool> go_on{false};
std::atomic<int> depth{0}, deepest{0}, ended{0}, asked_at_the_bound{0};

// How many of them are in a thread, while it lives.
struct Deeper {
    Deeper() {
        const int now = ++depth;
        for (int most = deepest; now > most && !deepest.compare_exchange_weak(most, now);) continue;
    }
    ~Deeper() {
        --depth;
        ++ended;
    }
};

int add(int a, int b) {
    return a + b;
}
void wait_until_told() {
    while (!go_on) std::this_thread::sleep_for(1ms);
}
void wait_for_caller(Here& here) {
    const Deeper deeper;
    here.caller().sync(fn<wait_until_told>);
}
// It does not wait: it asks.
void ask_caller(Here& here, bool at_all) {
    if (!at_all) return;
    const Deeper deeper;
    Call<void> call = here.caller().async(fn<wait_until_told>);
    while (!call.done()) {
        if (depth >= static_cast<int>(kNestedMax)) ++asked_at_the_bound;
        std::this_thread::yield();
    }
    call.get();
}

class Deep : public OnFabrics {
protected:
    void SetUp() override {
        go_on = false;
        depth = deepest = ended = 0;
        OnFabrics::SetUp();
    }
    void TearDown() override {
        go_on = true;
        OnFabrics::TearDown();
    }
};
ROVE_ON_FABRICS(Deep);

TEST_P(Deep, CallbacksThatWaitEnd) {
    constexpr int kMany = 10'000;
    for (const bool own_thread : {true, false}) {
        depth = deepest = ended = 0;
        NodeOptions options = this->options();
        options.own_thread = own_thread;
        Node node(started(options));
        const Peer peer = node.connect(server_->address());
        for (int i = 0; i < kMany; ++i)
            peer.async(fn<add>, 1, i).then([&peer](Call<int>) {
                const Deeper deeper;
                EXPECT_EQ(peer.sync(fn<add>, 2, 3), 5);
            });
        const auto all = [&] {
            if (!own_thread) (void)node.poll(1ms);
            return ended == kMany;
        };
        EXPECT_TRUE(soon(all, 60s)) << ended;
        if (!own_thread) EXPECT_LE(deepest, static_cast<int>(kNestedMax) + 1);
    }
}

// True: as many functions waited at once as one thread may nest. If the machine interrupts one of them it counts as long, and then the others
// run in other threads or wait in the mailbox, as they should; so the caller tries again.
bool functions_that_ask_end(const TestFabric& on, const NodeOptions& of_server, const NodeOptions& of_caller) {
    constexpr int kMany = 5'000;
    go_on = false;
    depth = deepest = ended = asked_at_the_bound = 0;
    Node server(on.start(of_server));
    Node caller(on.start(of_caller));
    const Peer peer = caller.connect(server.address());
    peer.sync(fn<ask_caller>, false);  // it is known to be short from here on
    std::thread posts([&] {
        for (int i = 0; i < kMany; ++i) peer.post(fn<ask_caller>, true);
    });
    const bool nested = soon([] { return depth >= static_cast<int>(kNestedMax); }, 5s);
    if (nested) EXPECT_TRUE(soon([] { return asked_at_the_bound >= 1000; })) << "each could have run one more";
    if (of_server.threads == 1) EXPECT_LE(deepest, static_cast<int>(kNestedMax) + 1);
    go_on = true;
    posts.join();
    EXPECT_TRUE(soon([] { return ended == kMany; }, 60s)) << ended;
    return nested;
}

TEST_P(Deep, FunctionsThatAskEnd) {
    for (const unsigned threads : {1U, 4U}) {
        NodeOptions of_server = options(true);
        of_server.threads = threads;
        bool nested = false;
        for (int i = 0; i < 5 && !nested; ++i) nested = functions_that_ask_end(GetParam(), of_server, options());
        EXPECT_TRUE(nested) << threads << " threads; of the last: " << deepest;
    }
}

TEST_P(Deep, FunctionsThatWaitHaveNobodyRefused) {
    constexpr int kMany = 600;
    Node other(started(options()));
    const Peer from_other = other.connect(server_->address());
    std::vector<Call<void>> calls;
    for (int i = 0; i < kMany; ++i) calls.push_back(peer().async(fn<wait_for_caller>));
    EXPECT_TRUE(soon([] { return depth > static_cast<int>(kNestedMax); })) << depth << " of them are in one thread";
    for (int i = 0; i < 5; ++i) EXPECT_EQ(from_other.sync(within(20s), fn<add>, 1, i), i + 1);
    go_on = true;
    for (Call<void>& each : calls) each.get();
}

int down(Here& here, int further) {
    return further == 0 ? 0 : 1 + here.caller().sync(fn<down>, further - 1);
}
// Short, so that any thread with room on its stack may run it. It takes more room than a small stack has.
int touch_much() {
    std::array<volatile char, 192UL * 1024> much;
    for (std::size_t i = 0; i < much.size(); i += 1024) much[i] = 1;
    return much[0];
}
int ask_for_much(Here& here) {
    int sum = 0;
    for (int i = 0; i < 100; ++i) sum += here.caller().sync(fn<touch_much>);
    return sum;
}
// The node's own threads run what comes for it.
TEST_P(Deep, AThreadWithASmallStackIsCalledBack) {
    EXPECT_EQ(peer().sync(fn<ask_for_much>), 100);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128UL * 1024);
    int reached = 0;
    struct Args {
        const Peer* peer;
        int* reached;
    } args{&peer(), &reached};
    pthread_t thread{};
    ASSERT_EQ(pthread_create(
                  &thread, &attributes,
                  [](void* raw) -> void* {
                      const auto* with = static_cast<Args*>(raw);
                      try {
                          *with->reached = with->peer->sync(fn<down>, 20) + with->peer->sync(fn<ask_for_much>);
                      } catch (const Error& error) {
                          ADD_FAILURE() << error.what();
                      }
                      return nullptr;
                  },
                  &args),
              0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    EXPECT_EQ(reached, 120);
}

// A wait that is over, and a function on top of it in the same thread that waits as well.
struct HeldUp {
    std::atomic<pthread_t> on_top{}, asked_later{};
    std::atomic<bool> ended = false;
} held_up;

void note_thread() {
    held_up.asked_later = pthread_self();
}
void call_later(Here& here) {
    for (int i = 0; i < 8; ++i) here.caller().sync(fn<note_thread>);  // what is known to be long, others run
    for (int i = 0; i < 3; ++i) {  // it looks at what it holds up when something comes
        std::this_thread::sleep_for(5 * kHeldUpMax);
        here.caller().sync(fn<note_thread>);
    }
}
void wait_on_top(Here& here, bool at_all) {
    if (!at_all) return;
    held_up.on_top = pthread_self();
    here.caller().sync(fn<call_later>);
    held_up.ended = true;
}
void end_beneath(Here& here) {
    for (int i = 0; i < 8; ++i) here.caller().sync(fn<wait_on_top>, false);
    here.caller().post(fn<wait_on_top>, true);
    std::this_thread::sleep_for(20ms);  // it waits by then
}
// How often, of five times, the thread that waits for `peer` runs what comes while it holds up a wait that is over. Where another thread
// takes the function that is to be on top, that is no time.
template <typename To>
int nests_further(const To& peer) {
    int nested = 0, times = 0;
    for (int i = 0; i < 100 && times < 5; ++i) {
        held_up.on_top = held_up.asked_later = pthread_t{};
        held_up.ended = false;
        peer.sync(fn<end_beneath>);
        while (!held_up.ended) std::this_thread::sleep_for(1ms);
        if (held_up.on_top != pthread_self()) continue;
        ++times;
        nested += held_up.asked_later == pthread_self() ? 1 : 0;
    }
    return times == 5 ? nested : -1;
}
int callers_thread_nests_further(Here& here) {
    return nests_further(here.caller());
}

TEST_P(Deep, WhoHoldsUpAWaitThatIsOverRunsNothingMoreOnTop) {
    EXPECT_EQ(nests_further(peer()), 0);                          // a program's thread
    EXPECT_EQ(peer().sync(fn<callers_thread_nests_further>), 0);  // one of the node's own
}

TEST_P(Deep, OnlySoManyWaitsHaveThreadsMadeForWhatComes) {
    EXPECT_EQ(nests_further(peer()), 0);  // its places are given back
    const auto [unnested, made] =
        EngineView::unnested_waits(detail::Inside::core(peer())->first_engine(), 2 * kUnnestedWaitsMax);
    EXPECT_EQ(unnested, kUnnestedWaitsMax);
    EXPECT_EQ(made, kUnnestedWaitsMax - 1);
}

}  // namespace
}  // namespace rove::test
