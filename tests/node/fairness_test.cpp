// Fairness: peers that never stop sending, wake-ups that no thread sees, and a node that ends while a function waits for ever.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "../api/nodes.hpp"
#include "engine/here.hpp"
#include "lead/turn.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::atomic<int> begun{0}, worked{0};
std::atomic<bool> go_on{false};

void wait_until_told() {
    ++begun;
    while (!go_on) std::this_thread::sleep_for(1ms);
}
void work() {
    ++worked;
    std::this_thread::sleep_for(2ms);
}
void work_long() {
    ++worked;
    std::this_thread::sleep_for(50ms);
}
int done_before() {
    return worked;
}
int add(int a, int b) {
    return a + b;
}
std::size_t length_of(const std::string& text) {
    return text.size();
}
void wait_with(const std::string&) {
    wait_until_told();
}
// Whether it counted as long when it began; it lasts as long as it is told.
bool counted_as_long(Here& here, int ms) {
    const bool before = here.raw()->function->pace.is_long();
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return before;
}

// The same, of one that also waits for a call.
bool counted_as_long_and_waits(Here& here, int ms) {
    const bool before = counted_as_long(here, ms);
    here.caller().sync(fn<work_long>);
    return before;
}

class Fairness : public OnFabrics {
protected:
    void SetUp() override {
        begun = worked = 0;
        go_on = false;
        OnFabrics::SetUp();
    }
    void TearDown() override {
        go_on = true;
        OnFabrics::TearDown();
    }
    static void take_both_places(const Peer& of) {
        for (int i = 1; i <= 2; ++i) {
            of.post(fn<wait_until_told>);
            ASSERT_TRUE(soon([i] { return begun == i; }));
        }
    }
};
ROVE_ON_FABRICS(Fairness);

// One peer's calls take turns with another's by their time, and not by their number alone.
TEST_P(Fairness, APeerWhoseCallsTakeLongDoesNotKeepOthersOut) {
    NodeOptions lone = options(true);
    lone.threads = 1;
    Node server(started(lone));
    Node other(started(options()));
    const Peer greedy = node_->connect(server.address()), modest = other.connect(server.address());
    greedy.sync(fn<work>);
    EXPECT_EQ(modest.sync(fn<done_before>), 1);
    greedy.post(fn<wait_until_told>);
    ASSERT_TRUE(soon([] { return begun == 1; }));
    for (int i = 0; i < 200; ++i) greedy.post(fn<work>);
    Call<int> call = modest.async(fn<done_before>);
    go_on = true;
    EXPECT_LT(call.get(), 32) << "it had to wait for as many as may be taken at once";
}

// A thread that polls takes the lock again and again: the leader can still work.
TEST_P(Fairness, ThreadsThatAskLeaveTheNodeToOthers) {
    constexpr int kCalls = 100;
    std::vector<std::thread> asking;
    std::atomic<int> answered{0};
    for (int t = 0; t < 4; ++t)
        asking.emplace_back([&] {
            for (int i = 0; i < kCalls; ++i) {
                Call<int> call = peer().async(fn<add>, i, 1);
                while (!call.done() && !go_on) continue;
                answered += go_on ? 0 : 1;
            }
        });
    for (int i = 0; i < 20; ++i) EXPECT_EQ(peer().sync(within(20s), fn<add>, i, 2), i + 2);
    EXPECT_TRUE(soon([&] { return answered == 4 * kCalls; }, 60s)) << answered;
    go_on = true;
    for (std::thread& each : asking) each.join();
}

// A place among the functions that run long goes round, and not to whoever came first each time.
TEST_P(Fairness, APlaceGoesToThePeerThatHasNotHadTheLastOne) {
    NodeOptions few = options(true);
    few.threads = 2;
    Node server(started(few));
    Node other(started(options()));
    const Peer greedy = node_->connect(server.address()), modest = other.connect(server.address());
    greedy.sync(fn<work_long>);  // it is known to run long from here on
    std::vector<std::thread> many;
    for (int t = 0; t < 6; ++t)
        many.emplace_back([&] {
            while (!go_on) greedy.sync(fn<work_long>);
        });
    ASSERT_TRUE(soon([] { return worked >= 4; }));
    const int before = worked;
    Call<void> call = modest.async(fn<work_long>);
    EXPECT_TRUE(call.wait_for(20s)) << "the other one's calls have run " << worked - before << " times in that time";
    go_on = true;
    for (std::thread& each : many) each.join();
}

// What counts is how long a function takes with its arguments, and not how long these take to be read: one that is short needs no place.
TEST_P(Fairness, AFunctionIsNotLongForItsLargeArgument) {
    NodeOptions few = options(true);
    few.threads = 2;
    Node server(started(few));
    Node other(started(options()));
    const Peer greedy = node_->connect(server.address()), modest = other.connect(server.address());
    take_both_places(greedy);
    const std::string large(30'000'000, 'x');
    for (int i = 0; i < 3; ++i) EXPECT_EQ(modest.sync(within(20s), fn<length_of>, large), large.size());
    go_on = true;
}

// Of those with large arguments no more begin than there are places, although nothing is known of them before the first of them ends.
TEST_P(Fairness, FunctionsWithLargeArgumentsTakePlacesAsOthersDo) {
    NodeOptions few = options(true);
    few.threads = 2;
    Node server(started(few));
    Node other(started(options()));
    const std::string large(400'000, 'x');  // the third waits in its mailbox
    std::vector<Peer> peers;
    for (int i = 0; i < 3; ++i) {
        peers.push_back(node_->connect(server.address()));
        peers.back().post(fn<wait_with>, large);
        if (i < 2) ASSERT_TRUE(soon([i] { return begun == i + 1; }));
        if (i == 0) ASSERT_TRUE(soon([&] { return other.connect(server.address()).sync(fn<add>, 1, 2) == 3; }));
    }
    const Peer modest = other.connect(server.address());
    for (int i = 0; i < 200; ++i) EXPECT_EQ(modest.sync(within(20s), fn<add>, i, 2), i + 2);
    EXPECT_EQ(modest.sync(within(20s), fn<done_before>), 0) << "nothing is known of this one either";
    EXPECT_EQ(begun, 2);
    go_on = true;
    EXPECT_TRUE(soon([] { return begun == 3; }));
}

// The kernel may interrupt a function for as long as a long one runs. While all places are taken, only another run can show that it is
// none.
TEST_P(Fairness, AFunctionThatSeemedLongOnceIsTriedAgain) {
    NodeOptions few = options(true);
    few.threads = 2;
    Node server(started(few));
    Node other(started(options()));
    const Peer modest = other.connect(server.address());
    EXPECT_TRUE(soon([&] { return !modest.sync(within(20s), fn<counted_as_long>, 0); }));
    const Peer greedy = node_->connect(server.address());
    take_both_places(greedy);
    (void)modest.sync(within(20s), fn<counted_as_long>, 40);
    EXPECT_TRUE(modest.sync(within(20s), fn<counted_as_long>, 0));
    EXPECT_TRUE(soon([&] { return !modest.sync(within(20s), fn<counted_as_long>, 0); }));
    go_on = true;
}

// While it waits for a call it keeps nobody waiting.
TEST_P(Fairness, AFunctionIsNotLongForItsWaits) {
    const auto counts_as_long = [&](int ms) { return peer().sync(within(20s), fn<counted_as_long_and_waits>, ms); };
    EXPECT_TRUE(soon([&] { return !counts_as_long(0); }));
    (void)counts_as_long(40);
    EXPECT_TRUE(counts_as_long(0));
    EXPECT_TRUE(soon([&] { return !counts_as_long(0); }));
}

// Pipes of this process, by inode.
std::set<ino_t> pipes() {
    std::set<ino_t> found;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        struct stat facts{};
        if (stat(each.path().c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode)) found.insert(facts.st_ino);
    }
    return found;
}

// Peers that share memory can read the bell that another one rings, so it may be missed. Calls a node whose bell nobody hears, once it has slept
// for so long: each must end.
void call_one_that_hears_no_bell(std::chrono::milliseconds asleep) {
    (void)scratch();
    NodeOptions sleepy;
    sleepy.fabric = FabricChoice::shm;
    sleepy.waiting = Waiting::frugal;
    sleepy.log = "error";
    sleepy.listen = "127.0.0.1:0";
    const std::set<ino_t> before = pipes();
    Node server(sleepy);
    std::vector<int> bells;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        const int file = std::stoi(each.path().filename());
        struct stat facts{};
        if (fstat(file, &facts) == 0 && S_ISFIFO(facts.st_mode) && !before.contains(facts.st_ino) &&
            (fcntl(file, F_GETFL) & O_ACCMODE) != O_WRONLY)
            bells.push_back(file);
    }
    ASSERT_FALSE(bells.empty());
    NodeOptions options;
    options.fabric = FabricChoice::shm;
    options.log = "error";
    Node client(options);
    const Peer link = client.connect(server.address());
    EXPECT_EQ(link.sync(fn<add>, 1, 2), 3);
    // From here on the bell rings where the test hears it, and not where the server listens.
    std::vector<int> ears;
    int silent[2] = {-1, -1};
    ASSERT_EQ(pipe2(silent, O_NONBLOCK | O_CLOEXEC), 0);
    for (const int bell : bells) {
        ears.push_back(open(("/proc/self/fd/" + std::to_string(bell)).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        ASSERT_GE(ears.back(), 0);
        ASSERT_EQ(dup3(silent[0], bell, O_CLOEXEC), bell);
    }
    long heard = 0;
    for (int i = 0; i < 200 && heard == 0; ++i) {
        std::this_thread::sleep_for(asleep);
        Call<int> call = link.async(fn<add>, i, 1);
        const bool ended = call.wait_for(20s);
        EXPECT_TRUE(ended) << "it sleeps through call " << i;
        if (!ended) break;
        char bytes[64];
        for (const int ear : ears) heard += std::max<long>(0, read(ear, bytes, sizeof bytes));
    }
    EXPECT_GT(heard, 0) << "the test has found no bell";
    for (const int ear : ears) close(ear);
    close(silent[0]);
    close(silent[1]);
}
TEST(Doorbell, ThatNobodyHearsIsMissedForAMomentOnly) {
    call_one_that_hears_no_bell(5ms);
}
// It is idle, and its leader does not look by itself.
TEST(Doorbell, ThatNobodyHearsIsMissedByAnIdleNodeForASecondOnly) {
    call_one_that_hears_no_bell(3 * kIdleAfter);
}

// Its function waits for a node that is stopped.
TEST(Command, EndsOnSigtermAlthoughAFunctionWaitsForEver) {
    const Package waits = Package::open(package("waits.c"));
    for (const char* threads : {"1", "4"}) {
        NodeProcess server({"--grace", "2", "--threads", threads});
        NodeProcess other({"--join", server.address()});
        NodeOptions options;
        options.log = "off";
        Node node(options);
        const Peer peer = node.connect(server.address());
        const std::byte to{1};
        (void)peer.call(within(60s), waits.entry("waits"), std::span(&to, 1)).get();
        other.stop();
        RawCall call = peer.call(waits.entry("waits"), std::span(&to, 1));
        EXPECT_FALSE(call.wait_for(200ms));
        const auto begin = Clock::now();
        server.signal(SIGTERM);
        EXPECT_EQ(server.wait(), 0);
        EXPECT_LT(Clock::now() - begin, 20s);
        other.signal(SIGCONT);
    }
}

void spin(int us) {
    const auto until = Clock::now() + std::chrono::microseconds(us);
    while (Clock::now() < until) {
    }
}

// Each of its turns may lose the lead to a function before the turn comes to what is due by the clock.
TEST(BusyNode, SeesThatAPeerHasDied) {
    (void)scratch();
    NodeOptions listens{.listen = "127.0.0.1:0", .log = "off"};
    Node server(listens);
    NodeOptions lone{.log = "off"};
    lone.own_thread = false;
    Node posts(lone);
    const Peer peer = posts.connect(server.address());
    peer.sync(fn<spin>, 1);
    std::atomic<bool> done = false;
    std::thread keeps_busy([&] {
        while (!done) peer.post(fn<spin>, 1000);
    });
    for (int round = 0; round < 6; ++round) {
        NodeProcess other;
        const Peer to_other = server.connect(other.address());
        (void)to_other.ping().get();
        other.stop();
        RawCall call = to_other.ping();
        std::this_thread::sleep_for(200ms);
        other.kill_now();
        EXPECT_TRUE(call.wait_for(5s)) << "round " << round;
        if (HasFailure()) break;
    }
    done = true;
    keeps_busy.join();
}

}  // namespace
}  // namespace rove::test
