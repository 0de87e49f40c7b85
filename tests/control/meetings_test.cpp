// Which meetings are opened, and how often: those that want one meeting share it, a link that there is serves as well, and only a connection that
// was dropped without an answer is opened again.
#include "control/meetings.hpp"

#include "meeting_parts.hpp"

namespace rove::test {
namespace {

using control::Meetings;
using SomePeer = std::shared_ptr<PeerState>;

class MeetingsTest : public OpensMeetings {
protected:
    ~MeetingsTest() override { meetings_.drop(); }

    Result<SomePeer> reach(const ByHand& node, SomePeer old = nullptr) {
        return run(meetings_.reach(node.address(), node.endpoints(), std::move(old)));
    }
    // As many conversations at once, each of which reaches the node.
    std::vector<Result<SomePeer>> reach_at_once(const ByHand& node, std::size_t count) {
        std::vector<Result<SomePeer>> ends;
        for (std::size_t i = 0; i < count; ++i)
            asio::co_spawn(thread_.io(), meetings_.reach(node.address(), node.endpoints(), nullptr),
                           [&ends](const std::exception_ptr& failed, Result<SomePeer> end) {
                               EXPECT_FALSE(failed);
                               ends.push_back(std::move(end));
                           });
        EXPECT_TRUE(run_until([&] { return ends.size() == count; }));
        return ends;
    }
    void expect_known(const ByHand& node, NodeId id) {
        wire::control::Member there = member(id);
        there.address = node.address();
        there.key = node.keys.key();
        members_.set(self_.certify(there), State::lost);
    }

    Meetings meetings_{beside_opening_};
};

TEST_F(MeetingsTest, ThoseThatWantOneMeetingShareItAndItsLink) {
    const ByHand node(*this, {{}});
    const auto ends = reach_at_once(node, 3);
    for (const auto& end : ends) {
        ASSERT_TRUE(end) << end.error().message();
        EXPECT_EQ(*end, *ends.front());
    }
    EXPECT_EQ(node.came, 1U);
    EXPECT_EQ(value_or_throw(reach(node)), *ends.front()) << "the link that there is";
    EXPECT_EQ(node.came, 1U);
}

TEST_F(MeetingsTest, ThoseThatShareOneShareItsErrorAndTheNextOpensAnother) {
    const ByHand node(*this, {{.goodbye = says(Goodbye::Reason::refused)}, {}});
    for (const auto& end : reach_at_once(node, 3)) {
        ASSERT_FALSE(end);
        EXPECT_EQ(end.error().code(), ErrorCode::refused);
    }
    EXPECT_EQ(node.came, 1U) << "it has answered: nobody asks again";
    EXPECT_TRUE(reach(node));
    EXPECT_EQ(node.came, 2U);
}

TEST_F(MeetingsTest, APeerIsMetAgainAsTheSameAfterItsLinkHasEnded) {
    const ByHand node(*this, {{}});
    const SomePeer peer = value_or_throw(reach(node));
    node.channels[0]->close();
    ASSERT_TRUE(run_until([&] { return !peers_.linked(*peer); }));
    EXPECT_EQ(value_or_throw(reach(node)), peer);
    node.channels[1]->close();
    ASSERT_TRUE(run_until([&] { return !peers_.linked(*peer); }));
    EXPECT_EQ(value_or_throw(reach(node, peer)), peer);
    EXPECT_EQ(node.came, 3U);
}

TEST_F(MeetingsTest, AConnectionThatWasDroppedIsOpenedAgain) {
    const ByHand node(*this, {{.stops = Stops::at_once}, {.stops = Stops::challenge}, {}});
    EXPECT_TRUE(reach(node));
    EXPECT_EQ(node.came, 3U);
}

TEST_F(MeetingsTest, AConnectionIsNotOpenedAgainForEver) {
    const ByHand node(*this, {{.stops = Stops::at_once}});
    const auto end = reach(node);
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code(), ErrorCode::disconnected);
    EXPECT_TRUE(contains(end.error().message(), "8 meetings were dropped")) << end.error().message();
    EXPECT_EQ(node.came, 8U);
}

TEST_F(MeetingsTest, AnAnswerThatStopsIsAnAnswer) {
    const ByHand node(*this, {{.stops = Stops::welcome}});
    EXPECT_FALSE(reach(node));
    EXPECT_EQ(node.came, 1U);
}

TEST_F(MeetingsTest, AMemberThatIsUnknownOrGoneIsNotLookedFor) {
    begin_as(1);
    EXPECT_EQ(run(meetings_.meet_member(0, false)).error().code(), ErrorCode::disconnected);
    const ByHand node(*this, {{}});
    expect_known(node, 0);
    members_.find(0)->state = State::gone;
    EXPECT_EQ(run(meetings_.meet_member(0, false)).error().code(), ErrorCode::disconnected);
    EXPECT_EQ(node.came, 0U);
}

TEST_F(MeetingsTest, AMeetingThatTheMemberHasOpenedServesAsWell) {
    begin_as(1);
    const ByHand node(*this, {{}});
    expect_known(node, 0);
    members_.find(0)->incoming = 1;
    std::optional<Status> end;
    asio::co_spawn(thread_.io(), meetings_.meet_member(0, false),
                   [&end](const std::exception_ptr&, Status status) { end = std::move(status); });
    for (int turns = 0; turns < 20; ++turns) thread_.io().run_one();
    EXPECT_FALSE(end);
    EXPECT_FALSE(meetings_.is_opening(0));
    const Linked linked = link_with(0);
    membership_.met(0, linked.adopted, linked.channel, Trust::proven, false);
    members_.find(0)->incoming = 0;
    ASSERT_TRUE(run_until([&] { return end.has_value(); }));
    EXPECT_TRUE(*end);
    EXPECT_EQ(node.came, 0U) << "it has come by itself";
}

TEST_F(MeetingsTest, AProbeAsksOnlyWhetherTheMemberIsThere) {
    begin_as(1);
    const ByHand node(*this, {{.goodbye = says(Goodbye::Reason::linked)}});
    expect_known(node, 0);
    EXPECT_TRUE(run(meetings_.meet_member(0, true)));
    EXPECT_EQ(node.came, 1U);
    EXPECT_EQ(peers(), 0U);
}

// The other side has a link that this one has lost.
TEST_F(MeetingsTest, AMemberThatSaysThatItIsLinkedIsAskedToReplaceThatLink) {
    begin_as(1);
    const ByHand node(*this, {{.goodbye = says(Goodbye::Reason::linked)}, {}});
    expect_known(node, 0);
    EXPECT_TRUE(run(meetings_.meet_member(0, false)));
    ASSERT_EQ(node.requests.size(), 2U);
    EXPECT_FALSE(node.requests[0].replace);
    EXPECT_TRUE(node.requests[1].replace);
    EXPECT_EQ(state_of(0), State::living);
}

// It says itself where it listens, so it is not believed before it has answered there.
TEST_F(MeetingsTest, AnAddressIsAMembersOnceItHasAnsweredThere) {
    begin_as(1);
    const ByHand another(*this, {{.goodbye = says(Goodbye::Reason::another)}, {}});
    expect_known(another, 0);
    const SomePeer client = value_or_throw(reach(another));
    EXPECT_EQ(state_of(0), State::gone);
    EXPECT_EQ(client->my_id(), client_id(0, 1)) << "whoever is there was met as any node is";
    const ByHand there(*this, {{.change = [](Welcome& welcome) { welcome.id = 2; }}});
    expect_known(there, 2);
    const SomePeer peer = value_or_throw(reach(there));
    EXPECT_EQ(members_.of(peer), 2U);
    EXPECT_TRUE(members_.find(2)->answers_there);
}

}  // namespace
}  // namespace rove::test
