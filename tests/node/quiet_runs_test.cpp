// Which functions are held back because many wait quietly: QuietRuns by itself.
#include <gtest/gtest.h>

#include <chrono>
#include <list>

#include "lead/quiet.hpp"
#include "peer/peer_state.hpp"

namespace rove::test {
namespace {

class QuietRunsTest : public testing::Test {
protected:
    QuietRunsTest() { short_.pace.ended_at_once(); }
    const PeerState* peer() { return &peers_.emplace_back(bytes_waiting_); }
    // False: one of them was too many.
    bool begin(const PeerState* from, unsigned count) {
        for (unsigned i = 0; i < count; ++i)
            if (!runs_.begin(from)) return false;
        return true;
    }
    // As many as may wait, a quarter of them by each of four peers. Gives the first of these.
    const PeerState* fill() {
        const PeerState* const first = peer();
        EXPECT_TRUE(begin(first, kQuietRunsOfPeerMax));
        while (runs_.threads() < kQuietRunsMax) EXPECT_TRUE(begin(peer(), kQuietRunsOfPeerMax));
        return first;
    }

    unsigned own_threads_ = 0;  // with some, as many more may begin
    QuietRuns runs_{own_threads_};
    code::Function unknown_, short_;  // one that has never ended, and one that has

private:
    std::size_t bytes_waiting_ = 0;
    std::list<PeerState> peers_;
};

TEST_F(QuietRunsTest, OnePeerHasAQuarter) {
    const PeerState *const one = peer(), *const other = peer();
    EXPECT_TRUE(begin(one, kQuietRunsOfPeerMax - 1));
    EXPECT_FALSE(runs_.holds(unknown_, one));
    EXPECT_TRUE(runs_.begin(one));
    EXPECT_TRUE(runs_.holds(unknown_, one));
    EXPECT_FALSE(runs_.begin(one));
    EXPECT_EQ(runs_.threads(), kQuietRunsOfPeerMax) << "who was refused counts nowhere";
    EXPECT_FALSE(runs_.holds(unknown_, other));
    EXPECT_FALSE(runs_.holds(unknown_, nullptr)) << "this node's own have a share of theirs";
    EXPECT_TRUE(runs_.begin(other));
}

TEST_F(QuietRunsTest, OfManyPeersTheFirstHaveAPlaceEach) {
    for (std::size_t i = 0; i < kFirstOfPeersMax; ++i) ASSERT_TRUE(runs_.begin(peer())) << i;
    const PeerState* const late = peer();
    EXPECT_TRUE(runs_.holds(unknown_, late));
    EXPECT_TRUE(runs_.held_until(unknown_, late));
    EXPECT_FALSE(runs_.begin(late));
    EXPECT_EQ(runs_.threads(), kFirstOfPeersMax);
}

TEST_F(QuietRunsTest, AllTogetherHaveTheWholeAndTheFirstOfEachPeerHasAPlaceBesides) {
    const PeerState* const full = fill();
    const PeerState* const late = peer();
    EXPECT_FALSE(runs_.holds(unknown_, late));
    EXPECT_TRUE(runs_.begin(late));
    EXPECT_EQ(runs_.threads(), kQuietRunsMax + 1);
    EXPECT_TRUE(runs_.holds(unknown_, late)) << "it has had its first";
    EXPECT_FALSE(runs_.begin(late));
    EXPECT_TRUE(runs_.end(full));
    EXPECT_TRUE(runs_.holds(unknown_, late)) << "there is still one more than may be";
    EXPECT_TRUE(runs_.end(full));
    EXPECT_FALSE(runs_.holds(unknown_, late));
    EXPECT_TRUE(runs_.begin(late));
}

// Those that had begun before nobody else was let in.
TEST_F(QuietRunsTest, AsManyMoreMayWaitAsTheNodeHasThreads) {
    own_threads_ = 3;
    const PeerState* const one = peer();
    EXPECT_TRUE(begin(one, kQuietRunsOfPeerMax));
    EXPECT_TRUE(runs_.holds(unknown_, one)) << "no further call of it begins";
    EXPECT_TRUE(begin(one, own_threads_));
    EXPECT_FALSE(runs_.begin(one));
    while (runs_.threads() < kQuietRunsMax + own_threads_) (void)begin(peer(), kQuietRunsOfPeerMax);
    const PeerState* const late = peer();
    EXPECT_TRUE(runs_.begin(late));
    EXPECT_FALSE(runs_.begin(late));
}

TEST_F(QuietRunsTest, WhoEndsSaysWhetherOthersWereHeldBackForIt) {
    const PeerState* const one = peer();
    EXPECT_TRUE(begin(one, kQuietRunsOfPeerMax));
    EXPECT_TRUE(runs_.end(one));
    EXPECT_FALSE(runs_.holds(unknown_, one));
    EXPECT_FALSE(runs_.end(one)) << "there was room already";
    while (runs_.threads() > 0) EXPECT_FALSE(runs_.end(one));
    EXPECT_TRUE(begin(one, kQuietRunsOfPeerMax)) << "its share is whole again";
    while (runs_.threads() > 0) (void)runs_.end(one);
    (void)fill();
    EXPECT_TRUE(runs_.begin(one)) << "and it has its first place again, whatever the others hold";
}

TEST_F(QuietRunsTest, OnlyWhatMayWaitQuietlyIsHeldBack) {
    const PeerState* const one = peer();
    EXPECT_TRUE(begin(one, kQuietRunsOfPeerMax));
    EXPECT_TRUE(runs_.holds(unknown_, one)) << "it may be one that waits";
    EXPECT_FALSE(runs_.holds(short_, one)) << "those that wait may wait for it";
    EXPECT_FALSE(runs_.held_until(short_, one));
    short_.waits_quietly = true;
    EXPECT_TRUE(runs_.holds(short_, one)) << "it has waited so before";
    code::Function ended_apart;
    ended_apart.pace.ended(std::chrono::seconds(1), {});
    EXPECT_FALSE(runs_.holds(ended_apart, one));
}

TEST_F(QuietRunsTest, WhoIsHeldBackIsRefusedWhenNothingHasChangedForSomeTime) {
    const PeerState *const one = peer(), *const other = peer();
    EXPECT_FALSE(runs_.held_until(unknown_, one)) << "it is not held back";
    EXPECT_TRUE(begin(one, kQuietRunsOfPeerMax - 1));
    const TimePoint before = Clock::now();
    EXPECT_TRUE(runs_.begin(one));
    const TimePoint after = Clock::now();
    const auto until = runs_.held_until(unknown_, one);
    ASSERT_TRUE(until);
    EXPECT_GE(*until, before + kQuietHoldFor);
    EXPECT_LE(*until, after + kQuietHoldFor);
    EXPECT_TRUE(runs_.begin(other));
    EXPECT_EQ(runs_.held_until(unknown_, one), until) << "another peer's begin gives it no more time";
    EXPECT_FALSE(runs_.held_until(unknown_, other));
    EXPECT_TRUE(runs_.end(one));
    EXPECT_TRUE(runs_.begin(one));
    EXPECT_GT(runs_.held_until(unknown_, one), until) << "one of its own does";
}

// Where all hold it back, what changes with any of them counts.
TEST_F(QuietRunsTest, WhoIsHeldBackForAllWaitsForAnyOfThem) {
    const PeerState* const full = fill();
    const PeerState* const late = peer();
    EXPECT_TRUE(runs_.begin(late));
    const auto until = runs_.held_until(unknown_, late);
    ASSERT_TRUE(until);
    EXPECT_TRUE(runs_.end(full));
    EXPECT_GT(runs_.held_until(unknown_, late), until);
}

TEST_F(QuietRunsTest, WhoIsRefusedIsToldTheBoundsAndWhatToDo) {
    unknown_.name = "some:run";
    const Error refused = QuietRuns::too_many("node 3", unknown_);
    EXPECT_EQ(refused.code(), ErrorCode::overloaded);
    for (const char* part : {"some:run on node 3: ", "16 of one peer", "64 of all", "for 10 s", "rove::no_nesting"})
        EXPECT_NE(refused.message().find(part), std::string::npos) << part << " is not in: " << refused.message();
}

}  // namespace
}  // namespace rove::test
