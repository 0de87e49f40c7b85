// A guest that asks to be let in, from its request on: what it gets, and what is taken back where it stops in the middle.
#include "control/arrival.hpp"

#include "control/reception.hpp"
#include "meeting_parts.hpp"

namespace rove::test {
namespace {

using control::Arrival;
using control::Guest;
using control::KeyPair;
using namespace std::chrono_literals;

class ArrivalTest : public MeetingParts {
protected:
    // What the guest has heard.
    struct Heard {
        std::optional<Welcome> welcome;
        std::optional<wire::control::Settled> settled;
        std::optional<wire::control::Redirect> redirect;
        bool let_in = false;
        Error error{ErrorCode::ok, ""};
        Goodbye::Reason reason = Goodbye::Reason::refused;
        SomeChannel channel;  // the guest's end
    };
    struct Asks {
        Role role = Role::client;
        Request request = {.triple = "x86_64-linux-gnu"};
        Stops stops = Stops::never;
        ConnectedBy by = ConnectedBy::offers;
        std::function<void()> welcomed = [] {};
    };
    // A client's or a member's request, with an offer.
    Asks asks(Role role) {
        Asks asks{.role = role};
        far_links_.push_back(value_or_throw(neighbours_.far_fabric().open_link()));
        asks.request.offer = far_link().offer();
        if (role != Role::client) {
            asks.request.address = address_of(2);
            asks.request.key = keys_.key();
        }
        return asks;
    }
    // With a certificate, as the member with that id that looks for this process.
    Asks asks_as_member(NodeId id) {
        Asks member = asks(Role::member);
        const auto certified =
            self_.certify({.id = id, .generation = 5, .address = member.request.address, .key = keys_.key()});
        member.request.certificate = {.id = id, .generation = 5, .signature = certified.signature};
        member.request.whom = self_.keys().key();
        return member;
    }
    // Signs the request for this meeting, unless the test has signed it already.
    Heard let_in(Asks asks) {
        auto [channel, far] = connection();
        Heard heard{.channel = far};
        Guest guest{
            .channel = channel, .role = asks.role, .mine = control::random_nonce(), .theirs = control::random_nonce()};
        if (asks.request.signature == wire::control::Signature{})
            asks.request.signature =
                keys_.sign(wire::control::statement("peer", guest.mine, guest.theirs, guest.channel->bound_here()));
        asio::co_spawn(thread_.io(), visit(heard, asks), asio::detached);
        {
            Arrival arrival(beside_, clients_, lanes_, guest, asks.request);
            const Status status = run(arrival.let_in());
            heard.let_in = status.has_value();
            if (!status) heard.error = status.error();
        }
        heard.reason = guest.reason;
        if (!heard.let_in) channel->close();  // as Reception does
        (void)run_until([&] { return visited_; });
        visited_ = false;
        return heard;
    }
    asio::awaitable<void> visit(Heard& heard, Asks asks) {
        co_await hear(heard, asks);
        visited_ = true;
    }
    asio::awaitable<void> hear(Heard& heard, const Asks& asks) {
        const SomeChannel channel = heard.channel;
        const Result<ByteBuffer> body = co_await channel->receive(Welcome::kBytesMax);
        if (!body) co_return;
        if (auto redirect = wire::control::decode<wire::control::Redirect>(*body)) heard.redirect = *redirect;
        if (auto welcome = wire::control::decode<Welcome>(*body)) heard.welcome = *welcome;
        if (!heard.welcome) co_return;
        asks.welcomed();
        if (asks.stops == Stops::welcome) co_return channel->close();
        if (!heard.welcome->offer.empty()) EXPECT_TRUE(far_link().connect(heard.welcome->offer));
        (void)co_await channel->send(encode(wire::control::Connected{.by = asks.by}));
        if (asks.stops == Stops::connected) co_return;
        if (auto settled = co_await channel->receive<wire::control::Settled>()) heard.settled = *settled;
    }
    asio::awaitable<Status> answers(NodeId id) {
        membership_.give_up(id, members_.find(id)->key, "nobody answers there");
        co_return fail(ErrorCode::disconnected, "nobody answers");
    }

    const KeyPair keys_;
    bool visited_ = false;
    control::IdClaims ids_{{.self = self_,
                            .members = members_,
                            .ids = neighbours_.ids,
                            .engines = engines_,
                            .meet_member = [this](NodeId id, bool /*probe*/) { return answers(id); },
                            .is_opening = [](NodeId) { return false; }}};
    const Arrival::Beside beside_{.host = host_,
                                  .thread = thread_,
                                  .self = self_,
                                  .members = members_,
                                  .membership = membership_,
                                  .ids = ids_,
                                  .links = links_};
    control::ClientIndexes clients_{1};
    control::ExpectedLanes lanes_;
};

TEST_F(ArrivalTest, AClientGetsAnIdAndALinkUntilItGoes) {
    const Heard heard = let_in(asks(Role::client));
    ASSERT_TRUE(heard.let_in) << heard.error.message();
    ASSERT_TRUE(heard.welcome && heard.settled);
    EXPECT_EQ(heard.welcome->you, client_id(0, 0));
    EXPECT_EQ(heard.welcome->key, wire::control::PublicKey{}) << "nobody has to prove anything to a client";
    EXPECT_FALSE(heard.welcome->has_ticket);
    EXPECT_TRUE(heard.settled->members.empty()) << "a client is told of no members";
    EXPECT_EQ(heard.settled->cluster, wire::control::KeySeed{}) << "a client has no key of the cluster";
    const auto peer = value_or_throw(peers_.linked(client_id(0, 0)));
    EXPECT_FALSE(clients_.take()) << "its index is its own";
    heard.channel->close();
    EXPECT_TRUE(run_until([&] { return !peers_.linked(*peer); }));
    EXPECT_TRUE(clients_.take());
}

TEST_F(ArrivalTest, WhatAClientWasGivenIsTakenBackWhereItStops) {
    Asks stops = asks(Role::client);
    stops.stops = Stops::welcome;
    const Heard heard = let_in(stops);
    EXPECT_FALSE(heard.let_in);
    EXPECT_EQ(heard.error.code(), ErrorCode::disconnected);
    EXPECT_TRUE(contains(heard.error.message(), "the node that connected could not open its lane"))
        << heard.error.message();
    EXPECT_TRUE(heard.welcome);
    EXPECT_EQ(links(), 0U);
    EXPECT_EQ(peers(), 0U);
    EXPECT_TRUE(clients_.take()) << "its index is free again";
}

TEST_F(ArrivalTest, OneMoreThanThereAreIndexesForIsRefused) {
    const auto taken = clients_.take();
    const Heard heard = let_in(asks(Role::client));
    EXPECT_EQ(heard.error.code(), ErrorCode::overloaded);
    EXPECT_FALSE(heard.welcome);
}

TEST_F(ArrivalTest, WhoJoinsIsCertifiedAndGetsTheList) {
    begin_as(0);
    members_.set(certified(1), State::lost);
    const Heard heard = let_in(asks(Role::join));
    ASSERT_TRUE(heard.let_in) << heard.error.message();
    ASSERT_TRUE(heard.welcome && heard.settled);
    EXPECT_EQ(heard.welcome->you, 2U);
    EXPECT_EQ(heard.welcome->key, self_.keys().key());
    EXPECT_EQ(heard.settled->cluster, self_.cluster());
    EXPECT_TRUE(self_.is_certified({.id = 2,
                                    .generation = heard.settled->certificate.generation,
                                    .address = address_of(2),
                                    .key = keys_.key(),
                                    .signature = heard.settled->certificate.signature}));
    EXPECT_EQ(heard.settled->members, (std::vector{self_.as_member(), certified(1)}));
    EXPECT_EQ(state_of(2), State::living);
    heard.channel->close();
    EXPECT_TRUE(run_until([&] { return state_of(2) == State::lost; }));
}

TEST_F(ArrivalTest, TheIdOfOneThatStopsIsGivenToTheNext) {
    begin_as(0);
    for (const Stops stops : {Stops::welcome, Stops::never}) {
        Asks joins = asks(Role::join);
        joins.stops = stops;
        State before = State::unused;
        joins.welcomed = [&] { before = state_of(1); };
        const Heard heard = let_in(joins);
        ASSERT_TRUE(heard.welcome);
        EXPECT_EQ(heard.welcome->you, 1U);
        EXPECT_EQ(before, State::joining);
        EXPECT_EQ(state_of(1), stops == Stops::never ? State::living : State::gone);
    }
}

TEST_F(ArrivalTest, WhoJoinsIsSentOnToTheLowest) {
    begin_as(3);
    members_.set(member(1), State::living);
    const Heard heard = let_in(asks(Role::join));
    EXPECT_TRUE(heard.let_in);
    ASSERT_TRUE(heard.redirect);
    EXPECT_EQ(heard.redirect->address, address_of(1));
    EXPECT_EQ(state_of(2), State::unused) << "it has no id from here";
    EXPECT_EQ(links(), 0U);
}

TEST_F(ArrivalTest, WhoCannotProveItsKeyGetsNothing) {
    begin_as(0);
    Asks stolen = asks(Role::join);
    stolen.request.signature = keys_.sign(as_bytes("another meeting"));
    const Heard heard = let_in(stolen);
    EXPECT_EQ(heard.error.code(), ErrorCode::refused);
    EXPECT_FALSE(heard.welcome);
    EXPECT_EQ(state_of(1), State::unused);
    Asks elsewhere = asks(Role::join);
    elsewhere.request.address = "8.8.8.8:7000";
    EXPECT_FALSE(let_in(elsewhere).welcome) << "others would connect there";
}

TEST_F(ArrivalTest, AClientHasNoMembers) {
    const Heard heard = let_in(asks(Role::join));
    EXPECT_EQ(heard.error.code(), ErrorCode::refused);
    EXPECT_TRUE(contains(heard.error.message(), "this process is a client")) << heard.error.message();
}

TEST_F(ArrivalTest, AMembersMeetingIsCountedWhileItGoesOn) {
    begin_as(0);
    members_.set(certified(1), State::lost);
    for (const Stops stops : {Stops::welcome, Stops::never}) {
        Asks comes = asks_as_member(1);
        members_.set(member_of(comes.request), State::lost);
        comes.stops = stops;
        unsigned counted = 0;
        comes.welcomed = [&] { counted = members_.find(1)->incoming; };
        EXPECT_EQ(let_in(comes).let_in, stops == Stops::never);
        EXPECT_EQ(counted, 1U) << "so that this node opens none";
        EXPECT_EQ(members_.find(1)->incoming, 0U);
    }
    EXPECT_EQ(state_of(1), State::living);
    const Heard again = let_in(asks_as_member(1));
    EXPECT_FALSE(again.let_in);
    EXPECT_EQ(again.reason, Goodbye::Reason::linked);
    EXPECT_EQ(members_.find(1)->incoming, 0U);
}

TEST_F(ArrivalTest, WhoLooksForTheProcessBeforeThisOneIsToldSoAndMet) {
    begin_as(0);
    Asks comes = asks_as_member(1);
    comes.request.whom = KeyPair().key();
    const Heard heard = let_in(comes);
    EXPECT_EQ(heard.error.code(), ErrorCode::refused);
    EXPECT_EQ(heard.reason, Goodbye::Reason::another);
    EXPECT_EQ(met_again_, std::vector<NodeId>{1});
}

TEST_F(ArrivalTest, WithoutALaneNobodyIsLetIn) {
    Asks without = asks(Role::client);
    without.request.offer.clear();
    const Heard heard = let_in(without);
    EXPECT_EQ(heard.error.code(), ErrorCode::unsupported);
    EXPECT_FALSE(heard.welcome);
    Asks wants_stream = asks(Role::client);
    wants_stream.by = ConnectedBy::ticket;
    EXPECT_EQ(let_in(wants_stream).error.code(), ErrorCode::invalid) << "it has no ticket";
    EXPECT_EQ(links(), 0U);
    EXPECT_TRUE(clients_.take());
}

TEST_F(ArrivalTest, AStreamComesWithItsTicketAndNotForever) {
    neighbours_.counted_fabric().streams = true;
    const auto brings = [this](const wire::control::Ticket& ticket) {
        auto [lane, far] = connection();
        return lanes_.bring(*lane, ticket).has_value();
    };
    Asks comes = asks(Role::client);
    comes.by = ConnectedBy::ticket;
    options_.connect_timeout = 20ms;
    const Heard late = let_in(comes);
    EXPECT_EQ(late.error.code(), ErrorCode::timed_out) << late.error.message();
    ASSERT_TRUE(late.welcome);
    EXPECT_TRUE(late.welcome->has_ticket);
    EXPECT_FALSE(brings(late.welcome->ticket)) << "the meeting is over";
    EXPECT_EQ(links(), 0U);
    options_.connect_timeout = 20s;
    Asks without_offer = comes;
    without_offer.request.offer.clear();
    without_offer.by = ConnectedBy::offers;
    const Heard wrong = let_in(without_offer);
    EXPECT_EQ(wrong.error.code(), ErrorCode::invalid) << "this node has made no offer";
    EXPECT_TRUE(clients_.take());
}

}  // namespace
}  // namespace rove::test
