// Time limits bound everything: each thing that can be asked of a peer ends in time where that peer is stopped, where its mailbox is
// full, within a function, and through the C interface; and the node works on afterwards.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "../api/nodes.hpp"
#include "api/access.hpp"
#include "engine_view.hpp"
#include "rove/rove.h"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kLimit = 100ms;
// A loaded machine may be this late, and something that waits for ever is later.
constexpr auto kMargin = 8s;

void times_out(const char* what, const std::function<void()>& work) {
    const auto begin = Clock::now();
    const Error error = error_of(work);
    EXPECT_EQ(error.code(), ErrorCode::timed_out) << what << ": " << error.what();
    EXPECT_LT(Clock::now() - begin, kMargin) << what;
}

// ---- a peer that is stopped

class LimitsOnAStoppedPeer : public testing::TestWithParam<TestFabric> {
protected:
    void SetUp() override {
        server_.emplace(std::vector<std::string>{"--fabric", GetParam().name});
        NodeOptions options;
        options.fabric = GetParam();
        options.log = "error";
        node_.emplace(options);
        peer_.emplace(node_->connect(server_->address()));
        package_.emplace(Package::open(package("basics.c")));
        EXPECT_EQ(peer_->call(echo(), bytes_).get(), bytes_);
    }
    void TearDown() override {
        if (server_) server_->signal(SIGCONT);
        if (peer_ && !HasFatalFailure()) {
            EXPECT_EQ(peer_->call(within(60s), echo(), bytes_).get(), bytes_) << "it does not work on";
        }
        peer_.reset();
        node_.reset();
    }
    [[nodiscard]] Entry echo() const { return package_->entry("echo"); }
    [[nodiscard]] Peer limited() const { return peer_->limited(within(kLimit)); }
    // Posts until there is no room for another of that size.
    void fill(std::size_t payload_bytes = 64 * 1024) {
        const std::vector<std::byte> large(payload_bytes);
        for (int i = 0; i < 10'000; ++i) try {
                limited().post(echo(), large);
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::timed_out) << error.what();
                EXPECT_NE(std::string(error.what()).find("not sent"), std::string::npos) << error.what();
                return;
            }
        FAIL() << "there is no end to its mailbox";
    }

    std::optional<NodeProcess> server_;
    std::optional<Node> node_;
    std::optional<Peer> peer_;
    std::optional<Package> package_;
    const std::vector<std::byte> bytes_{std::byte{1}, std::byte{2}};
};
ROVE_ON_FABRICS_OF_PROCESSES(LimitsOnAStoppedPeer);

TEST_P(LimitsOnAStoppedPeer, EndWhatWaitsForAnAnswer) {
    server_->stop();
    times_out("ping", [&] { (void)limited().ping(bytes_).get(); });
    times_out("call", [&] { (void)peer_->call(within(kLimit), echo(), bytes_).get(); });
    times_out("inline", [&] { (void)limited().call(echo().sent(Sending::always_inlined), bytes_).get(); });
    times_out("load", [&] { (void)limited().load(Package::open(package("version.c", {"-DVERSION=1"}))); });
    times_out("functions", [&] { (void)limited().functions(); });
    times_out("allocate", [&] { (void)limited().allocate<int>(1).get(); });
    times_out("a frame", [&] {
        CallFrame frame = limited().begin(echo(), 8);
        (void)frame.call().get();
    });
}

TEST_P(LimitsOnAStoppedPeer, EndWhatWaitsForRoom) {
    server_->stop();
    fill();
    times_out("ping", [&] { (void)limited().ping(std::vector<std::byte>(64 * 1024)); });
    times_out("deliver", [&] { limited().deliver(std::vector<std::byte>(64 * 1024)); });
    times_out("call", [&] { (void)peer_->call(within(kLimit), echo(), std::vector<std::byte>(64 * 1024)); });
    times_out("post", [&] { peer_->post(within(kLimit), echo(), std::vector<std::byte>(64 * 1024)); });
    times_out("parts", [&] { peer_->post(within(kLimit), echo(), std::vector<std::byte>(1 << 20)); });
    times_out("a frame", [&] { (void)limited().begin(echo(), 64 * 1024); });
    times_out("a batch", [&] {
        Batch batch = limited().batch(echo(), 64 * 1024);
        for (int i = 0; i < 4; ++i) (void)batch.add();
    });
    // One by one, as the function is unknown there.
    const Package other = Package::open(package("version.c", {"-DVERSION=1"}));
    times_out("a batch of something new", [&] {
        Batch batch = limited().batch(other.entry(other.entries().front()), 64 * 1024);
        for (int i = 0; i < 4; ++i) (void)batch.add();
    });
}

// Whoever is not told posts all of them again, and some run twice. Only the first frame of a batch can be posted in part, before the peer has
// been sent the function, and only where the room for it is between that of the code and that of all: each turn leaves another.
TEST_P(LimitsOnAStoppedPeer, ABatchThatIsPostedInPartSaysSo) {
    constexpr int kTurns = 16;
    for (int turn = 1; turn <= kTurns; ++turn) {
        const Package other = Package::open(package("version.c", {"-DVERSION=" + std::to_string(turn)}));
        server_->stop();
        peer_->post(echo(), std::vector<std::byte>(static_cast<std::size_t>(turn) * 1024));
        fill();
        fill(16 * 1024);
        const Error error = error_of([&] {
            Batch batch = limited().batch(other.entry(other.entries().front()), 1);
            for (int i = 0; i < 1'000'000; ++i) (void)batch.add();
        });
        ASSERT_EQ(error.code(), ErrorCode::timed_out) << error.what();
        if (std::string(error.what()).find(" payloads gathered were posted before") != std::string::npos) return;
        server_->signal(SIGCONT);
        ASSERT_EQ(peer_->call(within(60s), echo(), bytes_).get(), bytes_);
    }
    FAIL() << "nothing was posted in part in " << kTurns << " turns";
}

// ---- a peer whose threads are all taken, and typed calls

std::atomic<int> begun{0};
std::atomic<bool> go_on{false};

int add(int a, int b) {
    return a + b;
}
std::size_t take(const std::vector<char>& bytes) {
    return bytes.size();
}
void wait_until_told() {
    ++begun;
    while (!go_on) std::this_thread::sleep_for(1ms);
}

class Limits : public OnFabrics {
protected:
    void SetUp() override {
        begun = 0;
        go_on = false;
        OnFabrics::SetUp();
    }
    void TearDown() override {
        go_on = true;
        OnFabrics::TearDown();
    }
};
ROVE_ON_FABRICS(Limits);

TEST_P(Limits, BoundPosts) {
    NodeOptions lone = options(true);
    lone.threads = 1;
    Node server(started(lone));
    const Peer link = node_->connect(server.address());
    EXPECT_EQ(link.sync(fn<take>, std::vector<char>(2)), 2U);
    link.post(fn<wait_until_told>);
    ASSERT_TRUE(soon([] { return begun == 1; }));
    const std::vector<char> large(200'000);
    times_out("post", [&] {
        for (int i = 0; i < 1000; ++i) link.post(within(kLimit), fn<take>, large);
    });
    times_out("post of a limited peer", [&] { link.limited(within(kLimit)).post(fn<take>, large); });
    times_out("call of a limited peer", [&] { (void)link.limited(within(kLimit)).sync(fn<take>, large); });
    times_out("call of a limited peer in parts",
              [&] { (void)link.limited(within(kLimit)).sync(fn<take>, std::vector<char>(8 << 20)); });
    go_on = true;
    EXPECT_EQ(link.sync(within(60s), fn<take>, large), large.size());
    EXPECT_EQ(link.limited(within(0ms)).sync(within(60s), fn<add>, 1, 2), 3) << "what is said last counts";
    EXPECT_EQ(link.limited(within(0ms)).limited(Within{-1}).sync(fn<add>, 1, 2), 3);
}

int count_one() {
    return ++begun;
}
int call_own_node(Here& here) {
    return here.peer(here.node()).sync(within(0ms), fn<count_one>);
}
// Whatever it is sent by, and where there is room for it.
TEST_P(Limits, ThatAreOverBeforehandRunNothing) {
    for (int i = 1; i <= 3; ++i) EXPECT_EQ(peer().sync(fn<count_one>), i);  // by its handle from here on, at once
    const Peer over = peer().limited(within(0ms));
    const auto sent = peer().counters().frames_sent;
    times_out("sync", [&] { (void)over.sync(fn<count_one>); });
    times_out("async", [&] { (void)over.async(fn<count_one>).get(); });
    times_out("lambda", [&] { (void)over.sync([](int x) { return begun += x; }, 1); });
    times_out("post", [&] { over.post(fn<count_one>); });
    times_out("call in parts", [&] { (void)over.sync(fn<take>, std::vector<char>(8 << 20)); });
    times_out("longer than any", [&] { (void)peer().sync(Within{0}, fn<count_one>); });
    times_out("ping", [&] { (void)over.ping().get(); });
    EXPECT_EQ(peer().counters().frames_sent, sent) << "one of them was sent";
    times_out("of a function to its own node", [&] { (void)peer().sync(fn<call_own_node>); });
    EXPECT_EQ(peer().sync(fn<count_one>), 4) << "one of them ran";
}

// ---- within a function

std::atomic<int> ended{0};
std::vector<std::string> wrong_within_function;
void note(const char* what, ErrorCode expected, const std::function<void()>& work) {
    const auto begin = Clock::now();
    std::optional<ErrorCode> code;
    try {
        work();
    } catch (const Error& error) {
        code = error.code();
    }
    if (code != expected || Clock::now() - begin > kMargin) wrong_within_function.emplace_back(what);
}
// Its caller serves nobody until then.
void ask_a_deaf_caller(Here& here) {
    note("async", ErrorCode::timed_out, [&] { (void)here.caller().async(within(kLimit), fn<add>, 1, 2).get(); });
    note("sync", ErrorCode::timed_out, [&] { (void)here.caller().sync(within(kLimit), fn<add>, 1, 2); });
    note("allocate", ErrorCode::timed_out, [&] { (void)here.caller().allocate<int>(within(kLimit), 4).get(); });
    note("post", ErrorCode::timed_out, [&] {
        const std::vector<char> large(200'000);
        for (int i = 0; i < 1000; ++i) here.caller().post(within(kLimit), fn<take>, large);
    });
    note("async, full", ErrorCode::timed_out,
         [&] { (void)here.caller().async(within(kLimit), fn<take>, std::vector<char>(200'000)); });
    note("itself", ErrorCode::timed_out,
         [&] { (void)here.peer(here.node()).sync(within(kLimit), fn<wait_until_told>); });
    go_on = true;
    ++ended;
}

TEST_P(Limits, BoundCallsOfFunctions) {
    wrong_within_function.clear();
    ended = 0;
    NodeOptions deaf = options();
    deaf.own_thread = false;
    Node client(started(deaf));
    const Peer link = client.connect(server_->address());
    EXPECT_EQ(link.sync(fn<add>, 1, 2), 3);
    link.post(fn<ask_a_deaf_caller>);
    client.poll();
    EngineView::carry(detail::Inside::core(link)->first_engine());
    ASSERT_TRUE(soon([] { return ended == 1; }, 60s));
    EXPECT_EQ(wrong_within_function, std::vector<std::string>());
    EXPECT_EQ(link.sync(within(60s), fn<add>, 1, 2), 3);
}

// A thread that waits with a limit does not let a function that arrives while it waits keep it: another thread has time for that.
void call_back_slowly(Here& here) {
    here.caller().sync(fn<wait_until_told>);
}
TEST_P(Limits, AreKeptWhateverComesMeanwhile) {
    EXPECT_EQ(peer().sync(fn<add>, 1, 2), 3);
    std::thread late([] {
        (void)soon([] { return go_on.load(); }, 30s);
        go_on = true;
    });
    times_out("sync", [&] { peer().sync(within(1s), fn<call_back_slowly>); });
    EXPECT_EQ(begun, 1);
    EXPECT_FALSE(go_on) << "it waited for the function that came";
    go_on = true;
    late.join();
}

int post_back_slow(Here& here) {
    here.caller().post(fn<wait_until_told>);
    std::this_thread::sleep_for(50ms);
    return 7;
}
// Nor does one that waits without a limit.
TEST_P(Limits, AFunctionNotKnownAsShortRunsElsewhere) {
    // Its threads have only just been started.
    ASSERT_TRUE(soon([&] { return EngineView::has_followers(detail::Inside::core(peer())->first_engine()); }));
    std::thread late([] {
        (void)soon([] { return go_on.load(); }, 30s);
        go_on = true;
    });
    EXPECT_EQ(peer().sync(fn<post_back_slow>), 7);
    EXPECT_FALSE(go_on) << "it waited for the function that came";
    go_on = true;
    late.join();
}

// ---- from C

struct Freed {
    rove_node_t* node = nullptr;
    rove_package_t* package = nullptr;
    ~Freed() {
        rove_node_destroy(node);
        rove_package_close(package);
    }
};

TEST(OptionsInC, SayHowManyEngines) {
    for (const unsigned engines : {0U, 1U, 3U, ROVE_ENGINES_AUTO}) {
        Freed made;
        rove_node_options options{};
        options.own_thread = 1;
        options.engines = engines;
        EXPECT_EQ(rove_node_create(&options, &made.node), ROVE_OK) << rove_error_message();
    }
    rove_node_options options{};
    options.engines = 65;
    rove_node_t* none = nullptr;
    EXPECT_EQ(rove_node_create(&options, &none), ROVE_INVALID);
    EXPECT_NE(std::string(rove_error_message()).find("a node has 1 to 64 engines"), std::string::npos);
}

TEST(LimitsInC, BoundEachCallOfAPeer) {
    NodeProcess server;
    Freed made;
    rove_node_options options{};
    options.own_thread = 1;
    ASSERT_EQ(rove_node_create(&options, &made.node), ROVE_OK) << rove_error_message();
    rove_peer_t* peer = nullptr;
    ASSERT_EQ(rove_connect(made.node, server.address().c_str(), &peer), ROVE_OK) << rove_error_message();
    ASSERT_EQ(rove_package_open(package("basics.c").c_str(), &made.package), ROVE_OK);
    const auto echo = [&](const std::vector<char>& text) {
        rove_call_t* call = nullptr;
        int error = rove_call_begin(peer, made.package, "echo", text.data(), text.size(), &call);
        if (error == ROVE_OK) error = rove_call_wait(call, -1, nullptr, nullptr);
        rove_call_free(call);
        return error;
    };
    EXPECT_EQ(rove_peer_limit(nullptr, 1), ROVE_INVALID);
    EXPECT_EQ(echo({'a'}), ROVE_OK) << rove_error_message();
    ASSERT_EQ(rove_peer_limit(peer, 60'000), ROVE_OK);
    EXPECT_EQ(rove_load(peer, made.package), ROVE_OK) << "a running node is fast enough";
    ASSERT_EQ(rove_peer_limit(peer, kLimit.count()), ROVE_OK);
    server.stop();
    const auto begin = Clock::now();
    EXPECT_EQ(echo({'b'}), ROVE_TIMED_OUT) << rove_error_message();
    EXPECT_EQ(rove_load(peer, made.package), ROVE_TIMED_OUT) << rove_error_message();
    const std::vector<char> large(64 * 1024);
    int error = ROVE_OK;
    for (int i = 0; i < 10'000 && error == ROVE_OK; ++i)
        error = rove_call_post(peer, made.package, "echo", large.data(), large.size());
    EXPECT_EQ(error, ROVE_TIMED_OUT) << rove_error_message();
    EXPECT_LT(Clock::now() - begin, 3 * kMargin);
    server.signal(SIGCONT);
    ASSERT_EQ(rove_peer_limit(peer, -1), ROVE_OK);
    EXPECT_EQ(echo({'c'}), ROVE_OK) << rove_error_message();
}

}  // namespace
}  // namespace rove::test
