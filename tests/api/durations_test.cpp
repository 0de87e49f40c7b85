// Limits longer than any clock counts are for ever, and those that are no time at all are over at once.
#include <atomic>
#include <limits>
#include <memory>
#include <thread>

#include "../node/soon.hpp"
#include "nodes.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::duration;

constexpr auto kLongest = std::numeric_limits<std::int64_t>::max();

TEST(Durations, SaturateWhereTheyDoNotFit) {
    EXPECT_EQ(within(std::chrono::hours::max()).ns, kLongest);
    EXPECT_EQ(within(std::chrono::seconds::max()).ns, kLongest);
    EXPECT_EQ(within(std::chrono::milliseconds::max()).ns, kLongest);
    EXPECT_EQ(within(std::chrono::nanoseconds::max()).ns, kLongest);
    EXPECT_EQ(within(std::chrono::hours(24L * 365 * 300)).ns, kLongest);
    EXPECT_EQ(within(duration<double>(1e30)).ns, kLongest);
    EXPECT_EQ(within(duration<float>(std::numeric_limits<float>::infinity())).ns, kLongest);
    EXPECT_EQ(within(duration<std::int32_t, std::ratio<1, 1024>>(1 << 30)).ns, 1'048'576'000'000'000);
}

TEST(Durations, ThatAreNegativeOrNoNumberAreOverAtOnce) {
    EXPECT_EQ(within(-1ns).ns, 0);
    EXPECT_EQ(within(std::chrono::hours::min()).ns, 0);
    EXPECT_EQ(within(duration<double>(-1e30)).ns, 0);
    EXPECT_EQ(within(duration<double>(std::numeric_limits<double>::quiet_NaN())).ns, 0);
}

TEST(Durations, ThatFitAreExact) {
    EXPECT_EQ(within(1ns).ns, 1);
    EXPECT_EQ(within(5ms).ns, 5'000'000);
    EXPECT_EQ(within(24h * 365 * 100 + 1ns).ns, 3'153'600'000'000'000'001);
    EXPECT_EQ(within(duration<double>(0.5)).ns, 500'000'000);
}

class LongestLimits : public OnFabrics {};
ROVE_ON_FABRICS(LongestLimits);

int soon_seven() {
    std::this_thread::sleep_for(50ms);
    return 7;
}

TEST_P(LongestLimits, AreWaitedFor) {
    EXPECT_EQ(peer().async(within(std::chrono::hours::max()), fn<soon_seven>).get(), 7);
    EXPECT_EQ(peer().async(within(duration<double>(1e30)), fn<soon_seven>).get(), 7);
    EXPECT_EQ(peer().limited(within(std::chrono::milliseconds::max())).sync(fn<soon_seven>), 7);
    Call<int> call = peer().async(fn<soon_seven>);
    EXPECT_TRUE(call.wait_for(std::chrono::hours::max()));
    EXPECT_EQ(call.get(), 7);
    RawCall raw = peer().ping({});
    EXPECT_TRUE(raw.wait_for(std::chrono::milliseconds::max()));
}

TEST_P(LongestLimits, MayBeANodesOptions) {
    NodeOptions longest = options();
    longest.grace = longest.connect_timeout = std::chrono::milliseconds::max();
    longest.own_thread = false;
    Node node(started(longest));
    Call<int> call = node.connect(server_->address()).async(fn<soon_seven>);
    for (int looks = 0; looks < 100'000 && !call.done(); ++looks) (void)node.poll(std::chrono::milliseconds::max());
    EXPECT_EQ(call.get(), 7);
}

std::atomic<bool> asked{false};
int late_seven() {
    asked = true;
    std::this_thread::sleep_for(500ms);
    return 7;
}
int ask_caller(Here& here) {
    return here.caller().sync(fn<late_seven>);
}

// A function that waits when its node ends has most of the grace for it.
TEST_P(LongestLimits, MayBeANodesGrace) {
    asked = false;
    NodeOptions longest = options(true);
    longest.grace = std::chrono::milliseconds::max();
    auto node = std::make_unique<Node>(started(longest));
    Call<int> call = node_->connect(node->address()).async(fn<ask_caller>);
    ASSERT_TRUE(soon([] { return asked.load(); }));
    node.reset();
    EXPECT_EQ(call.get(), 7);
}

}  // namespace
}  // namespace rove::test
