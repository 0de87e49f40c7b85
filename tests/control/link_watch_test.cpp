// Links that were adopted: whatever ends one, the engine and the membership are told, and a client's place is given back.
#include "control/link_watch.hpp"

#include "control_parts.hpp"

namespace rove::test {
namespace {

using control::LinkWatch;
using wire::control::Goodbye;

class LinkWatchTest : public ControlParts {
protected:
    void SetUp() override { begin_as(3); }
    // Of member 1, which is here by then.
    std::pair<Linked, LinkWatch::Unwatched> link_with_member() {
        Linked linked = meet(1);
        LinkWatch::Unwatched unwatched(watch_,
                                       {.peer = linked.adopted.peer, .meeting = linked.adopted.meeting, .member = 1});
        return {std::move(linked), std::move(unwatched)};
    }
    void other_end_says(const Linked& linked, const ByteBuffer& message) {
        ASSERT_EQ(::send(linked.socket, message.data(), message.size(), 0), static_cast<ssize_t>(message.size()));
    }
    void run_until_lost(const Linked& linked) {
        for (int turns = 0; peers_.linked(*linked.adopted.peer) && turns < 100; ++turns)
            thread_.io().run_one_for(std::chrono::seconds(20));
        EXPECT_FALSE(peers_.linked(*linked.adopted.peer));
    }

    LinkWatch watch_{{.thread = thread_, .engines = engines_, .membership = membership_}};
};

TEST_F(LinkWatchTest, ALinkThatNobodyWatchesEnds) {
    {
        const auto [linked, unwatched] = link_with_member();
        EXPECT_TRUE(peers_.linked(*linked.adopted.peer));
        EXPECT_EQ(state_of(1), State::living);
    }
    EXPECT_EQ(state_of(1), State::lost);
    EXPECT_EQ(met_again_, std::vector<NodeId>{1});
}

TEST_F(LinkWatchTest, AGoodbyeSaysWhetherTheMemberLeft) {
    for (const auto& [reason, state] :
         {std::pair(Goodbye::Reason::cut, State::lost), std::pair(Goodbye::Reason::left, State::gone)}) {
        auto [linked, unwatched] = link_with_member();
        watch_.begin(linked.channel, std::move(unwatched), "a test");
        other_end_says(linked, encode(Goodbye{.reason = reason}));
        run_until_lost(linked);
        EXPECT_EQ(state_of(1), state);
        EXPECT_FALSE(linked.channel->is_open());
    }
}

TEST_F(LinkWatchTest, MembersNameOthersAndAreCutWhereTheySayWhatIsNotDue) {
    auto [linked, unwatched] = link_with_member();
    watch_.begin(linked.channel, std::move(unwatched), "a test");
    other_end_says(linked, encode(wire::control::Members{.members = {certified(7)}}));
    other_end_says(linked, encode(wire::control::Hello{}));
    run_until_lost(linked);
    EXPECT_EQ(state_of(7), State::lost);
    EXPECT_EQ(met_again_, (std::vector<NodeId>{7, 1}));
}

TEST_F(LinkWatchTest, WhoNamesAMemberWithoutACertificateIsCut) {
    auto [linked, unwatched] = link_with_member();
    watch_.begin(linked.channel, std::move(unwatched), "a test");
    other_end_says(linked, encode(wire::control::Members{.members = {member(7)}}));
    run_until_lost(linked);
    EXPECT_EQ(state_of(7), State::unused);
    EXPECT_EQ(met_again_, (std::vector<NodeId>{1}));
}

TEST_F(LinkWatchTest, AClientsPlaceIsGivenBackAndItSaysNothingOfMembers) {
    control::ClientIndexes places(1);
    Linked linked = link_with(client_id(3, 0));
    LinkWatch::Unwatched unwatched(
        watch_,
        {.peer = linked.adopted.peer, .meeting = linked.adopted.meeting, .client = value_or_throw(places.take())});
    watch_.begin(linked.channel, std::move(unwatched), "a test");
    EXPECT_FALSE(places.take());
    other_end_says(linked, encode(wire::control::Members{.members = {member(7)}}));
    run_until_lost(linked);
    EXPECT_TRUE(places.take());
    EXPECT_EQ(state_of(7), State::unused);
}

}  // namespace
}  // namespace rove::test
