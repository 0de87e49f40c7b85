// One attempt to open a meeting: what comes of it where the other end does as it should, where it stops in the middle, and where it says what
// it may not. Whatever comes of it, nothing is left of an attempt that has failed.
#include "control/opening.hpp"

#include "meeting_parts.hpp"

namespace rove::test {
namespace {

using control::Met;
using control::Opening;
using control::Wanted;
using namespace std::chrono_literals;

class OpeningTest : public OpensMeetings {
protected:
    struct End {
        std::optional<Met> met;
        Error error{ErrorCode::ok, ""};
        bool was_dropped = false, was_linked = false, was_not_joined = false;
    };
    End open(const ByHand& node, Role role = Role::client, std::chrono::milliseconds time = 20s) {
        return open(Wanted{.address = node.address(), .endpoints = node.endpoints(), .role = role}, time);
    }
    End open(const Wanted& wanted, std::chrono::milliseconds time = 20s) {
        Opening opening(beside_opening_, servers_, opening_, wanted);
        Result<Met> met = run(opening.meet(Clock::now() + time));
        End end{.was_dropped = opening.was_dropped(),
                .was_linked = opening.was_told(Goodbye::Reason::linked),
                .was_not_joined = opening.was_told(Goodbye::Reason::not_joined)};
        if (met)
            end.met = std::move(*met);
        else
            end.error = met.error();
        return end;
    }
    // The other member, as this one knows it.
    Wanted member_at(const ByHand& node, NodeId id) {
        wire::control::Member there = member(id);
        there.address = node.address();
        there.key = node.keys.key();
        members_.set(self_.certify(there), State::lost);
        return {.address = node.address(),
                .endpoints = node.endpoints(),
                .role = Role::member,
                .member = id,
                .whom = node.keys.key()};
    }
    void expect_nothing_left(std::size_t links_before = 0) {
        EXPECT_EQ(peers(), 0U);
        EXPECT_EQ(links(), links_before);
        EXPECT_TRUE(opening_.empty());
        EXPECT_TRUE(run_until([this] { return open_.empty(); })) << "a connection is left";
    }

    control::Servers servers_;
    std::multiset<NodeId> opening_;
};

TEST_F(OpeningTest, AClientMeetsANodeAndWatchesTheLink) {
    ByHand node(*this, {{}});
    const End end = open(node);
    ASSERT_TRUE(end.met) << end.error.message();
    EXPECT_EQ(end.met->id, 0U);
    ASSERT_TRUE(end.met->peer);
    EXPECT_TRUE(peers_.linked(*end.met->peer));
    EXPECT_EQ(end.met->peer->my_id(), client_id(0, 1));
    ASSERT_EQ(node.requests.size(), 1U);
    EXPECT_EQ(node.requests[0].key, wire::control::PublicKey{}) << "a client shows no key";
    EXPECT_EQ(servers_.size(), 1U);
    node.channels[0]->close();
    EXPECT_TRUE(run_until([&] { return !peers_.linked(*end.met->peer); })) << "nobody watches the link";
}

TEST_F(OpeningTest, WhereTheOtherEndStopsNothingIsLeft) {
    for (const auto& [stops, dropped] : {std::pair{Stops::at_once, true},
                                         {Stops::challenge, true},
                                         {Stops::welcome, false},
                                         {Stops::connected, false}}) {
        SCOPED_TRACE(static_cast<int>(stops));
        const ByHand node(*this, {{.stops = stops}});
        const End end = open(node);
        EXPECT_FALSE(end.met);
        EXPECT_EQ(end.error.code(), ErrorCode::disconnected) << end.error.message();
        EXPECT_TRUE(contains(end.error.message(), "meeting the node at " + node.address())) << end.error.message();
        EXPECT_EQ(end.was_dropped, dropped) << "before it has answered, and may answer the next time";
        expect_nothing_left();
    }
}

TEST_F(OpeningTest, OneThatDoesNotAnswerCostsTheTimeForAMeeting) {
    asio::basic_socket_acceptor<asio::generic::stream_protocol> silent(thread_.io());
    const std::string address = "unix:" + folder_ + "/silent";
    const auto endpoints = value_or_throw(control::resolve(value_or_throw(control::parse_address(address))));
    silent.open(endpoints[0].protocol());
    silent.bind(endpoints[0]);
    silent.listen();
    const TimePoint begin = Clock::now();
    const End end = open(Wanted{.address = address, .endpoints = endpoints}, 30ms);
    EXPECT_GE(Clock::now() - begin, 30ms);
    EXPECT_EQ(end.error.code(), ErrorCode::timed_out);
    EXPECT_TRUE(contains(end.error.message(), "did not answer within")) << end.error.message();
    expect_nothing_left();
}

// On TCP, where the kernel does not say whose process it is.
TEST_F(OpeningTest, NothingIsDisclosedToOneThatDoesNotKnowTheCookie) {
    const ByHand node(*this, {{}}, "127.0.0.1:0");
    const End end = open(node);
    EXPECT_EQ(end.error.code(), ErrorCode::refused);
    EXPECT_TRUE(contains(end.error.message(), "does not know this user's cookie")) << end.error.message();
    EXPECT_TRUE(run_until([&] { return !node.goodbyes.empty(); }));
    EXPECT_EQ(node.goodbyes[0].reason, Goodbye::Reason::refused) << "instead of its own proof";
    EXPECT_TRUE(node.requests.empty());
    expect_nothing_left();
}

TEST_F(OpeningTest, AnIdThatANodeMayNotGiveIsRefused) {
    for (const NodeId id : {3U, client_id(1, 1)}) {
        const ByHand node(*this, {{.change = [id](Welcome& welcome) { welcome.you = id; }}});
        const End end = open(node);
        EXPECT_EQ(end.error.code(), ErrorCode::invalid) << id;
        EXPECT_TRUE(run_until([&] { return !node.goodbyes.empty(); }));
        EXPECT_EQ(node.goodbyes[0].code, ErrorCode::invalid) << "it is told why";
        expect_nothing_left();
    }
    self_.listens_at(address_of(1));
    for (const NodeId id : {0U, client_id(0, 1)}) {
        const ByHand node(*this, {{.change = [id](Welcome& welcome) { welcome.you = id; }}});
        EXPECT_EQ(open(node, Role::join).error.code(), ErrorCode::invalid) << id;
    }
}

TEST_F(OpeningTest, AGoodbyeIsTheErrorAndItsReasonIsKept) {
    const ByHand linked(*this, {{.goodbye = says(Goodbye::Reason::linked)}});
    const End end = open(linked);
    EXPECT_EQ(end.error.code(), ErrorCode::refused);
    EXPECT_TRUE(contains(end.error.message(), "it does not want to")) << end.error.message();
    EXPECT_TRUE(end.was_linked);
    EXPECT_FALSE(end.was_not_joined);
    EXPECT_FALSE(end.was_dropped) << "it has answered";
    expect_nothing_left();
}

TEST_F(OpeningTest, WhoJoinsMayBeSentOnAndNobodyElse) {
    self_.listens_at(address_of(1));
    const ByHand joined(*this, {{.redirect = "127.0.0.1:9"}}), met(*this, {{.redirect = "127.0.0.1:9"}});
    const End end = open(joined, Role::join);
    ASSERT_TRUE(end.met) << end.error.message();
    EXPECT_FALSE(end.met->peer);
    EXPECT_EQ(end.met->redirect, "127.0.0.1:9");
    expect_nothing_left();
    EXPECT_EQ(open(met).error.code(), ErrorCode::invalid) << "a client is not sent on";
}

TEST_F(OpeningTest, AMemberIsMetWhileItIsCountedAsBeingMet) {
    begin_as(1);
    ByHand node(*this, {{}});
    const Wanted wanted = member_at(node, 0);
    std::size_t counted = 0;
    node.asked = [&] { counted = opening_.count(0); };
    const End end = open(wanted);
    ASSERT_TRUE(end.met) << end.error.message();
    EXPECT_EQ(counted, 1U);
    EXPECT_TRUE(opening_.empty());
    EXPECT_EQ(state_of(0), State::living);
    EXPECT_TRUE(members_.find(0)->answers_there);
    ASSERT_EQ(node.requests.size(), 1U);
    EXPECT_EQ(node.requests[0].whom, node.keys.key());
    EXPECT_EQ(node.requests[0].certificate.id, 1U);
    node.channels[0]->close();
    EXPECT_TRUE(run_until([&] { return state_of(0) == State::lost; }));
}

TEST_F(OpeningTest, AMeetingThatOnlyProbesIsNotCounted) {
    begin_as(1);
    ByHand node(*this, {{.goodbye = says(Goodbye::Reason::linked)}});
    Wanted wanted = member_at(node, 0);
    wanted.probe = true;
    std::size_t counted = 99;
    node.asked = [&] { counted = opening_.count(0); };
    EXPECT_TRUE(open(wanted).was_linked);
    EXPECT_EQ(counted, 0U) << "whoever is there would take it for a meeting at the same time";
}

TEST_F(OpeningTest, AMemberIsGoneWhereNobodyOrAnotherIsAtItsAddress) {
    begin_as(1);
    Wanted wanted;
    {
        const ByHand node(*this, {{}});
        wanted = member_at(node, 0);
    }
    const End nobody = open(wanted);
    EXPECT_EQ(nobody.error.code(), ErrorCode::disconnected);
    EXPECT_EQ(state_of(0), State::gone);
    // Another process at its address that says so.
    for (const auto reason : {Goodbye::Reason::not_joined, Goodbye::Reason::another}) {
        const ByHand says_so(*this, {{.goodbye = says(reason)}});
        EXPECT_FALSE(open(member_at(says_so, 2)).met);
        EXPECT_EQ(state_of(2), State::gone);
    }
    // One that has another id, or another key.
    const ByHand other(*this, {{.change = [](Welcome& welcome) { welcome.id = 5; }}});
    EXPECT_FALSE(open(member_at(other, 3)).met);
    EXPECT_EQ(state_of(3), State::gone);
    // No reason to think so.
    const ByHand stops(*this, {{.stops = Stops::challenge}}), cut(*this, {{.goodbye = says(Goodbye::Reason::cut)}});
    EXPECT_FALSE(open(member_at(stops, 4)).met);
    EXPECT_FALSE(open(member_at(cut, 5)).met);
    EXPECT_EQ(state_of(4), State::lost);
    EXPECT_EQ(state_of(5), State::lost);
}

TEST_F(OpeningTest, AMemberHasItsKeyAndTakesThisNodeForWhatItIs) {
    begin_as(1);
    const ByHand forger(*this, {{.spoil = [](Welcome& welcome) { welcome.signature.bytes[3] ^= 1; }}});
    EXPECT_EQ(open(member_at(forger, 0)).error.code(), ErrorCode::refused);
    EXPECT_EQ(state_of(0), State::lost) << "anybody may say so";
    const ByHand mistaken(*this, {{.change = [](Welcome& welcome) { welcome.you = 7; }}});
    EXPECT_EQ(open(member_at(mistaken, 0)).error.code(), ErrorCode::invalid);
    expect_nothing_left();
}

}  // namespace
}  // namespace rove::test
