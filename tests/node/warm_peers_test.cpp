// What a leader owes its peers, and which of them it looks at.
#include "peer/warm_peers.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "neighbours.hpp"

namespace rove::test {
namespace {

using fabric::Traffic;

// A run that reads a peer's calls, as a test says.
class Reader final : public MailboxReader {
public:
    [[nodiscard]] bool keeps_mailbox() const override { return keeps; }
    void give_back_if_long() override {
        if (is_long) from->end_reading(*this);
    }
    [[nodiscard]] bool is_called() const override { return called; }
    [[nodiscard]] bool takes(const wire::Frame& /*frame*/) override { return false; }
    bool keeps = true, called = false, is_long = false;
    CallsTaken* from = nullptr;
};

class NeedsOfAPeer : public testing::Test {
protected:
    [[nodiscard]] PeerNeeds needs(Takes takes = Takes::all) { return needs_of(peer_, takes, now_); }
    void arrive(Traffic traffic) { neighbours_.send_from(peer_, traffic, {.kind = wire::Kind::ping}, {}); }
    void take(Traffic traffic) {
        wire::Frame frame;
        ASSERT_TRUE(peer_.link()->next(traffic, frame));
        peer_.link()->release(traffic);
    }

    Neighbours neighbours_;
    PeerState& peer_ = neighbours_.add(2);
    const TimePoint now_ = Clock::now();
};

TEST_F(NeedsOfAPeer, ItMayCoolWhileNothingIsToBeDoneWithIt) {
    Reader reader;
    const auto while_it = [this](const char* what, const std::function<void()>& begin,
                                 const std::function<void()>& end) {
        begin();
        EXPECT_FALSE(may_cool(peer_, now_)) << what;
        end();
        EXPECT_TRUE(may_cool(peer_, now_)) << what;
    };
    EXPECT_TRUE(may_cool(peer_, now_));
    while_it("has a call that waits", [this] { peer_.calls.parked.emplace(); }, [this] { peer_.calls.parked.reset(); });
    while_it(
        "waits to begin a payload", [this] { peer_.calls.set_waits_to_stage(true); },
        [this] { peer_.calls.set_waits_to_stage(false); });
    while_it(
        "has a run that reads its calls", [&] { peer_.calls.begin_reading(reader); },
        [&] { peer_.calls.end_reading(reader); });
    while_it("has begun a frame", [this] { peer_.sends.open_frame(); }, [this] { peer_.sends.close_frame(true); });
    while_it(
        "has frames that wait", [this] { peer_.outbox_of(Traffic::prompt).push({.kind = wire::Kind::ping}, {}, {}); },
        [this] { peer_.outbox_of(Traffic::prompt).pop(); });
    while_it(
        "has a payload that arrives", [this] { peer_.calls.staged.begin_elsewhere(1, 100'000, now_); },
        [this] { (void)peer_.calls.staged.clear(); });
    for (const Traffic traffic : {Traffic::calls, Traffic::prompt})
        while_it("has sent a frame", [&] { arrive(traffic); }, [&] { take(traffic); });
    peer_.lose(Error(ErrorCode::disconnected, "it left"));
    EXPECT_FALSE(may_cool(peer_, now_));
}

TEST_F(NeedsOfAPeer, AFrameIsServedByALeaderThatTakesIt) {
    EXPECT_FALSE(needs().now || has_work(peer_));
    arrive(Traffic::calls);
    EXPECT_TRUE(needs().now && has_work(peer_));
    EXPECT_FALSE(needs(Takes::prompt).now);
    EXPECT_FALSE(needs(Takes::nothing).now);
    peer_.calls.parked.emplace();
    EXPECT_FALSE(needs().now) << "the parked one is before it";
    peer_.calls.parked.reset();
    peer_.calls.set_waits_to_stage(true);
    EXPECT_FALSE(needs().now) << "it is the part that waits";
    peer_.calls.set_waits_to_stage(false);
    Reader reader;
    peer_.calls.begin_reading(reader);
    EXPECT_FALSE(needs().now) << "a run reads it";
    reader.keeps = false;
    EXPECT_TRUE(needs().now);
    peer_.calls.end_reading(reader);
    arrive(Traffic::prompt);
    EXPECT_TRUE(needs(Takes::prompt).now);
    EXPECT_FALSE(needs(Takes::nothing).now);
}

TEST_F(NeedsOfAPeer, NothingTellsWhenItsCallsGoOn) {
    EXPECT_FALSE(needs().look);
    peer_.calls.set_waits_to_stage(true);
    EXPECT_TRUE(needs().look);
    peer_.calls.set_waits_to_stage(false);
    peer_.calls.parked.emplace();
    EXPECT_TRUE(needs().look);
    peer_.calls.parked->wait_for_thread({});
    EXPECT_FALSE(needs().look) << "the end of a function tells";
    peer_.calls.parked.reset();
    Reader reader;
    peer_.calls.begin_reading(reader);
    EXPECT_FALSE(needs().look) << "it wakes the leader";
    reader.called = true;
    EXPECT_TRUE(needs().look);
    peer_.calls.end_reading(reader);
}

TEST_F(NeedsOfAPeer, FramesWaitForRoomUntilTheLinkEnds) {
    EXPECT_FALSE(needs().room || waits_for_room(peer_));
    peer_.outbox_of(Traffic::calls).push({.kind = wire::Kind::ping}, {}, {});
    EXPECT_TRUE(needs().room && waits_for_room(peer_) && has_work(peer_));
    peer_.link()->break_with(Error(ErrorCode::invalid, "it sent nonsense"));
    EXPECT_FALSE(needs().room || waits_for_room(peer_));
    EXPECT_TRUE(has_work(peer_)) << "its end";
    EXPECT_FALSE(needs(Takes::nothing).now) << "until somebody knows that it is of no use";
    peer_.lose(Error(ErrorCode::disconnected, "it left"));
    EXPECT_TRUE(needs(Takes::nothing).now);
    peer_.outbox_of(Traffic::calls).pop();
}

// The goodbye that says why is waited for first.
TEST_F(NeedsOfAPeer, AfterItsLinkHasEndedItIsLookedAtInTime) {
    const auto link = std::make_shared<NoLink>();
    PeerState& peer = neighbours_.add(neighbours_.identity_of(3), link);
    EXPECT_FALSE(needs_of(peer, Takes::all, now_).until);
    link->end_transport("its socket was closed");
    EXPECT_EQ(needs_of(peer, Takes::all, now_).until, now_ + kGoodbyeWait);
    EXPECT_FALSE(needs_of(peer, Takes::all, now_).now || may_cool(peer, now_));
    EXPECT_FALSE(needs_of(peer, Takes::all, now_ + kGoodbyeWait).until);
}

TEST_F(NeedsOfAPeer, TheFirstOfWhatIsDue) {
    EXPECT_FALSE(needs().until);
    peer_.calls.staged.begin_elsewhere(1, 100'000, now_);
    EXPECT_EQ(needs().until, now_ + kStagingLook);
    peer_.calls.parked.emplace();
    peer_.calls.parked->wait_for_thread(now_ + std::chrono::milliseconds(1));
    EXPECT_EQ(needs().until, now_ + std::chrono::milliseconds(1));
    EXPECT_EQ(needs(Takes::prompt).until, now_ + kStagingLook) << "it takes no calls";
    (void)peer_.calls.staged.clear();
    peer_.calls.parked.reset();
    EXPECT_FALSE(needs().until);
}

class Warm : public testing::Test {
protected:
    void SetUp() override {
        for (NodeId id = 1; id <= kWarmMax + 2; ++id) neighbours_.add(id);
    }
    [[nodiscard]] WarmPeers& warm() { return neighbours_.peers.warm(); }
    [[nodiscard]] PeerState& peer(std::size_t place) { return *neighbours_.peers[place]; }
    [[nodiscard]] bool is_there(std::size_t place) { return std::ranges::count(warm(), &peer(place)) == 1; }
    void arrive(std::size_t from, Traffic traffic = Traffic::calls) {
        neighbours_.send_from(peer(from), traffic, {.kind = wire::Kind::ping}, {});
    }

    Neighbours neighbours_{0, 16};
};

TEST_F(Warm, APeerIsThereOnceUntilItIsRemoved) {
    const std::uint64_t version = warm().version();
    warm().add(peer(1));
    EXPECT_EQ(warm().size(), kWarmMax + 2);
    EXPECT_EQ(warm().version(), version);
    const std::shared_ptr<PeerState> gone = neighbours_.peers[1];
    neighbours_.peers.remove(1);
    EXPECT_EQ(warm().size(), kWarmMax + 1);
    EXPECT_EQ(std::ranges::count(warm(), gone.get()), 0);
    EXPECT_NE(warm().version(), version);
    gone->link_warmed();
    EXPECT_EQ(warm().size(), kWarmMax + 1) << "nobody has it any more";
}

TEST_F(Warm, ThoseThatMakeWayForOneThatIsRemovedAreRemovedThemselves) {
    const std::shared_ptr<PeerState> last = neighbours_.peers[kWarmMax + 1];
    neighbours_.peers.remove(0);
    EXPECT_EQ(std::ranges::count(warm(), last.get()), 1);
    warm().remove(*last);
    EXPECT_EQ(std::ranges::count(warm(), last.get()), 0);
    EXPECT_EQ(warm().size(), kWarmMax);
    warm().remove(*last);
    EXPECT_EQ(warm().size(), kWarmMax) << "it is not there any more";
}

class PeerListTest : public Warm {};

TEST_F(PeerListTest, FindsEachUntilItIsRemoved) {
    std::vector<std::shared_ptr<PeerState>> peers(neighbours_.peers.begin(), neighbours_.peers.end());
    const auto gone = peers[1];
    neighbours_.peers.remove(1);
    neighbours_.peers.remove(neighbours_.peers.size() - 1);
    std::size_t found = 0;
    for (std::size_t place = 0; place < neighbours_.peers.size(); ++place)
        found += neighbours_.peers.find(&peer(place)) == neighbours_.peers[place] ? 1 : 0;
    EXPECT_EQ(found, peers.size() - 2);
    EXPECT_EQ(neighbours_.peers.find(gone.get()), nullptr);
    EXPECT_EQ(neighbours_.peers.find(peers[kWarmMax].get()), nullptr) << "it was the last one";
    neighbours_.peers.add(gone);
    EXPECT_EQ(neighbours_.peers.find(gone.get()), gone);
}

TEST_F(Warm, QuietPeersAreColdUntilSomethingComesFromThem) {
    arrive(0);
    warm().cool_quiet(*neighbours_.fabric());
    EXPECT_EQ(warm().size(), 1U);
    EXPECT_TRUE(is_there(0));
    arrive(3);
    take_warmed(*neighbours_.fabric());
    EXPECT_EQ(warm().size(), 2U);
    EXPECT_TRUE(is_there(3));
    warm().cool_quiet(*neighbours_.fabric());
    EXPECT_EQ(warm().size(), 2U) << "few stay as they are";
}

TEST_F(Warm, APeerThatHasSentOrReceivedStaysForOneMoreLook) {
    value_or_throw(neighbours_.sender.send(peer(2), Traffic::calls, {.kind = wire::Kind::ping}, {}, {}));
    warm().cool_quiet(*neighbours_.fabric());
    EXPECT_TRUE(is_there(2));
    EXPECT_EQ(warm().size(), 1U);
}

TEST_F(Warm, OneWithoutALinkIsNoLongerLookedAt) {
    DroppedBytes dropped;
    (void)peer(4).end_meeting(dropped);
    for (std::size_t i = 0; i < kWarmMax + 2; ++i)
        if (i != 4)
            value_or_throw(neighbours_.sender.send(peer(i), Traffic::calls, {.kind = wire::Kind::ping}, {}, {}));
    warm().cool_quiet(*neighbours_.fabric());
    EXPECT_FALSE(is_there(4));
    EXPECT_EQ(warm().size(), kWarmMax + 1);
}

TEST_F(Warm, WhatOneNeedsAllNeed) {
    const TimePoint now = Clock::now();
    const PeerNeeds none = warm().needs(Takes::all, now);
    EXPECT_FALSE(none.now || none.room || none.look || none.until);
    EXPECT_TRUE(none.may_lose_bell);
    arrive(1);
    peer(2).calls.staged.begin_elsewhere(1, 100'000, now);
    peer(3).calls.parked.emplace();
    peer(4).outbox_of(Traffic::calls).push({.kind = wire::Kind::ping}, {}, {});
    const PeerNeeds all = warm().needs(Takes::all, now);
    EXPECT_TRUE(all.now && all.look && all.room && warm().any_waits_for_room());
    EXPECT_EQ(all.until, now + kStagingLook);
    peer(4).outbox_of(Traffic::calls).pop();
    EXPECT_FALSE(warm().needs(Takes::all, now).room || warm().any_waits_for_room());
    (void)peer(2).calls.staged.clear();
}

TEST_F(Warm, ALeaderTakesTheMailboxBackFromARunThatIsLong) {
    Reader reader;
    reader.from = &peer(1).calls;
    reader.from->begin_reading(reader);
    arrive(1);
    EXPECT_FALSE(warm().needs(Takes::all, Clock::now()).now);
    reader.is_long = true;
    EXPECT_TRUE(warm().needs(Takes::all, Clock::now()).now);
    EXPECT_EQ(peer(1).calls.reader(), nullptr);
}

TEST_F(Warm, ALostBellIsFoundByWhatIsToBeDone) {
    const TimePoint now = Clock::now();
    EXPECT_FALSE(warm().any_has_lost_its_bell(now));
    arrive(1);
    EXPECT_TRUE(warm().any_has_lost_its_bell(now));
    peer(1).calls.parked.emplace();
    EXPECT_FALSE(warm().any_has_lost_its_bell(now)) << "the call is not begun yet";
}

TEST_F(Warm, WhoeverReadsOnesCallsSeesToTheOthersToo) {
    const TimePoint now = Clock::now();
    arrive(1);
    EXPECT_FALSE(warm().any_needs_more_than(peer(1), now));
    EXPECT_TRUE(warm().any_needs_more_than(peer(2), now));
    arrive(1, Traffic::prompt);
    EXPECT_TRUE(warm().any_needs_more_than(peer(1), now));
}

TEST_F(Warm, TheLeaderAwaitsWhatItTakes) {
    std::vector<fabric::AwaitedSignal> signals;
    warm().await(signals, Takes::prompt);
    EXPECT_EQ(signals.size(), warm().size());
    signals.clear();
    peer(1).calls.parked.emplace();
    warm().await(signals, Takes::all);
    EXPECT_EQ(signals.size(), 2 * warm().size() - 1) << "a parked call is there already";
    arrive(2);
    EXPECT_EQ(std::ranges::count_if(signals, [](const fabric::AwaitedSignal& each) { return each.arrived(); }), 1);
    std::vector<std::shared_ptr<fabric::Link>> links;
    warm().add_links(links);
    EXPECT_EQ(links.size(), warm().size());
}

}  // namespace
}  // namespace rove::test
