// Callbacks, coroutines and threads that wait for calls of a node while another thread ends it: each of them is notified. Each test gives the
// others time to begin to wait; a wait that begins too late for that ends as well.
#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "../node/soon.hpp"
#include "nodes.hpp"
#include "rove/task.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

class Ends : public testing::TestWithParam<std::tuple<TestFabric, bool>> {
protected:
    // State of threads that the test does not join: a thread that is never notified outlives it.
    struct Told {
        std::atomic<int> callbacks{0}, cancelled{0}, others{0};
    };
    static NodeOptions options(bool listens) {
        (void)scratch();
        NodeOptions options;
        options.fabric = fabric();
        options.log = "error";
        options.own_thread = !listens && has_own_thread();
        if (listens) options.listen = "127.0.0.1:0";
        return options;
    }
    [[nodiscard]] static const TestFabric& fabric() { return std::get<TestFabric>(GetParam()); }
    [[nodiscard]] static bool has_own_thread() { return std::get<bool>(GetParam()); }
    void wait_in_a_thread(const std::function<void()>& work) {
        std::thread([told = told_, work] {
            try {
                work();
                ++told->others;
            } catch (const Error& error) {
                ++(error.code() == ErrorCode::cancelled ? told->cancelled : told->others);
            }
        }).detach();
        ++threads_;
    }
    void end_node() {
        std::this_thread::sleep_for(100ms);  // so that they wait
        node_.reset();
    }
    void expect_all_threads_are_told() {
        EXPECT_TRUE(soon([&] { return told_->cancelled + told_->others == threads_; })) << "one still waits";
        EXPECT_EQ(told_->cancelled, threads_);
    }

    Node server_ = fabric().start(options(true));  // never answers: nobody drives it
    std::unique_ptr<Node> node_ = std::make_unique<Node>(fabric().start(options(false)));
    Peer peer_ = node_->connect(server_.address());
    std::shared_ptr<Told> told_ = std::make_shared<Told>();
    int threads_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Fabrics, Ends, testing::Combine(testing::ValuesIn(kFabrics), testing::Bool()),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param).name) +
                                    (std::get<1>(info.param) ? "_own" : "_driven");
                         });

Task<int> twice(Peer peer) {
    const int first = co_await peer.async([] { return 1; });
    co_return first + co_await peer.async([] { return 2; });
}
Task<int> goes_on(Peer peer) {
    try {
        co_return co_await peer.async([] { return 1; });
    } catch (const Error&) {
        // nobody can begin anything any more, and is told so
    }
    co_return co_await peer.async([] { return 2; });
}

TEST_P(Ends, ResumesCoroutinesThatOthersWaitFor) {
    wait_in_a_thread([peer = peer_] { (void)sync_wait(twice(peer)); });
    wait_in_a_thread([peer = peer_] { (void)sync_wait(goes_on(peer)); });
    wait_in_a_thread([peer = peer_] { (void)sync_wait(peer.async([] { return 3; })); });
    end_node();
    expect_all_threads_are_told();
}

TEST_P(Ends, CallsCallbacksWhileOthersWait) {
    for (int i = 0; i < 3; ++i)
        peer_.async([] { return 1; }).then([told = told_](const Call<int>&) { ++told->callbacks; });
    wait_in_a_thread([peer = peer_] { (void)peer.sync([] { return 2; }); });
    wait_in_a_thread([peer = peer_] {
        Call<int> call = peer.async([] { return 3; });
        (void)call.wait_for(1h);
        (void)call.get();
    });
    end_node();
    EXPECT_EQ(told_->callbacks, 3) << "by the time that the node has ended";
    expect_all_threads_are_told();
    EXPECT_TRUE(soon([&] { return told_.use_count() == 1; })) << "what a callback captures stays for ever";
}

// The last of its time: nothing is told in time where nobody tells it at once.
TEST_P(Ends, TellsAllWhereItIsGivenNoTime) {
    NodeOptions hasty = options(false);
    hasty.grace = 0ms;
    node_ = std::make_unique<Node>(fabric().start(hasty));
    const Peer peer = node_->connect(server_.address());
    for (int i = 0; i < 3; ++i)
        peer.async([] { return 1; }).then([told = told_](const Call<int>&) { ++told->callbacks; });
    wait_in_a_thread([peer] { (void)peer.sync([] { return 2; }); });
    wait_in_a_thread([peer] { (void)sync_wait(twice(peer)); });
    end_node();
    EXPECT_EQ(told_->callbacks, 3);
    expect_all_threads_are_told();
}

// A callback that does not return keeps nobody else from being told.
TEST_P(Ends, TellsTheOthersWhereACallbackDoesNotReturn) {
    NodeOptions hasty = options(false);
    hasty.grace = 200ms;
    hasty.log = "off";  // of what does not return
    node_ = std::make_unique<Node>(fabric().start(hasty));
    const Peer peer = node_->connect(server_.address());
    const auto go_on = std::make_shared<std::atomic<bool>>(false);
    for (int i = 0; i < 2; ++i) {
        Call<int> call = peer.async([] { return 1; });
        const rove_pending raw = *detail::Access::pending(call);
        call.then([told = told_, go_on, stays = i == 0](const Call<int>&) {
            ++told->callbacks;
            if (stays) go_on->wait(false);
        });
        if (i == 0) rove_pending_cancel(&raw);
    }
    wait_in_a_thread([peer] { (void)peer.sync([] { return 2; }); });
    ASSERT_TRUE(soon([&] { return told_->callbacks == 1; }));
    end_node();
    EXPECT_EQ(told_->callbacks, 2);
    *go_on = true;
    go_on->notify_all();
    expect_all_threads_are_told();
    EXPECT_TRUE(soon([&] { return told_.use_count() == 1; }));
}

// Nor where it is told by the end itself.
TEST_P(Ends, TellsTheOthersWhereACallbackThatItTellsDoesNotReturn) {
    NodeOptions hasty = options(false);
    hasty.grace = 200ms;
    hasty.log = "off";  // of what does not return
    node_ = std::make_unique<Node>(fabric().start(hasty));
    const Peer peer = node_->connect(server_.address());
    const auto go_on = std::make_shared<std::atomic<bool>>(false);
    for (int i = 0; i < 3; ++i)
        peer.async([] { return 1; }).then([told = told_, go_on, stays = i == 0](const Call<int>&) {
            ++told->callbacks;
            if (stays) go_on->wait(false);
        });
    wait_in_a_thread([peer] { (void)peer.sync([] { return 2; }); });
    end_node();
    EXPECT_EQ(told_->callbacks, 3);
    *go_on = true;
    go_on->notify_all();
    expect_all_threads_are_told();
    EXPECT_TRUE(soon([&] { return told_.use_count() == 1; }));
}

// A callback may end its own node. The node waits for others, and says nothing of the one that ends it.
TEST_P(Ends, InItsOwnCallbackWithoutAWord) {
    Node answers = fabric().start({.listen = "127.0.0.1:0", .fabric = fabric(), .log = "error"});
    NodeOptions hasty = options(false);
    hasty.grace = 500ms;
    node_ = std::make_unique<Node>(fabric().start(hasty));
    const Peer peer = node_->connect(answers.address()), silent = node_->connect(server_.address());
    silent.async([] { return 1; }).then([told = told_](const Call<int>&) { ++told->callbacks; });
    Call<int> last = silent.async([] { return 1; });  // the node stays until this is gone, whoever drives it
    testing::internal::CaptureStderr();
    peer.async([] { return 1; }).then([this, told = told_](const Call<int>&) {
        node_.reset();
        ++told->others;
    });
    EXPECT_TRUE(soon([&] {
        if (!has_own_thread()) (void)last.done();
        return told_->others == 1;
    }));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(told_->callbacks, 1) << "others are told before the node is gone";
    EXPECT_EQ(error_of([&] { (void)last.get(); }).code(), ErrorCode::cancelled);
}

// ---- a node that waits for room, to ask whether its posts have begun

std::atomic<bool> may_return{false}, ran_in_the_ender{false};
std::atomic<std::thread::id> ender;
template <int>
void block(bool now) {
    if (!now) return;
    if (std::this_thread::get_id() == ender.load()) ran_in_the_ender = true;
    while (!may_return) std::this_thread::sleep_for(1ms);
}
void take(const std::vector<char>&) {}

// Functions that were always short until then: the thread that ends the node might run them in place.
template <int... kNumbers>
void call_each(const std::function<void(const std::function<void(const Peer&)>&)>& call,
               std::integer_sequence<int, kNumbers...> /*numbers*/, bool now) {
    (call([now](const Peer& peer) { peer.limited(within(200ms)).post(fn<block<kNumbers>>, now); }), ...);
}

TEST(AnEndingNode, RunsNothingInTheThreadThatEndsItWhileAPeerTakesNothing) {
    (void)scratch();
    const auto options = [](bool listens, bool served) {
        NodeOptions options;
        options.fabric = FabricChoice::shm;
        options.own_thread = served;
        options.grace = 1'000ms;
        options.log = "warn";
        if (listens) options.listen = "127.0.0.1:0";
        return options;
    };
    const Node stopped(options(true, false));  // nobody serves it
    auto node = std::make_unique<Node>(options(true, true));
    Node caller(options(false, true));
    const Peer peer = caller.connect(node->address());
    constexpr auto kNumbers = std::make_integer_sequence<int, 8>();
    for (int i = 0; i < 300; ++i) call_each([&peer](const auto& call) { call(peer); }, kNumbers, false);
    (void)peer.ping().get();
    {
        const Peer full = node->connect(stopped.address());
        EXPECT_THROW(for (;;) full.limited(within(20ms)).post(fn<take>, std::vector<char>(4000)), Error);
    }
    testing::internal::CaptureStderr();
    std::atomic<bool> ended{false};
    std::thread ends([&] {
        ender = std::this_thread::get_id();
        node.reset();
        ended = true;
    });
    std::this_thread::sleep_for(30ms);  // it waits for room now
    call_each(
        [&peer](const auto& call) {
            try {
                call(peer);
            } catch (const Error&) {  // the node may have ended
            }
            std::this_thread::sleep_for(30ms);
        },
        kNumbers, true);
    EXPECT_TRUE(soon([&] { return ended.load(); }));
    EXPECT_FALSE(ran_in_the_ender);
    may_return = true;
    ends.join();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("1 peers have not begun all of its posts"), std::string::npos) << said;
}

// The time in which each of them may answer is over before the wait for all of them is.
TEST(AnEndingNode, NamesTheNumberOfAllPeersThatHaveNotBegunItsPosts) {
    const auto options = [](bool listens) {
        NodeOptions options;
        options.fabric = FabricChoice::shm;
        options.own_thread = !listens;
        options.grace = 1'000ms;
        options.log = "warn";
        if (listens) options.listen = "127.0.0.1:0";
        return options;
    };
    const Node one(options(true)), another(options(true)), third(options(true));  // nobody serves them
    auto node = std::make_unique<Node>(options(false));
    for (const Node* const each : {&one, &another, &third})
        node->connect(each->address()).post(fn<take>, std::vector<char>(10));
    testing::internal::CaptureStderr();
    node.reset();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("3 peers have not begun all of its posts"), std::string::npos) << said;
}

}  // namespace
}  // namespace rove::test
