#include "control/opening.hpp"

#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include "base/unix_socket.hpp"
#include "code/own_code.hpp"
#include "control/co_try.hpp"
#include "program/residents.hpp"
#include "wire/kinds.hpp"

namespace rove::control {
namespace {

constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);
constexpr auto kQueuePause = std::chrono::milliseconds(5);

using wire::control::Challenge;
using wire::control::Connected;
using wire::control::ConnectedBy;
using wire::control::Goodbye;
using wire::control::Hello;
using wire::control::LaneHello;
using wire::control::Redirect;
using wire::control::Role;
using wire::control::Settled;
using wire::control::Welcome;

// timed_out at that time at the latest. If the listener's queue is full, TCP tries again, and a Unix socket fails at once.
asio::awaitable<asio::error_code> connect_to(ControlThread& thread, Socket& socket,
                                             asio::generic::stream_protocol::endpoint endpoint, TimePoint until) {
    using namespace asio::experimental::awaitable_operators;  // NOLINT(google-build-using-namespace)
    for (;;) {
        asio::error_code error;
        socket.close(error);
        socket.open(endpoint.protocol(), error);
        if (error) co_return error;
        refuse_descriptors(socket.native_handle());
        asio::steady_timer limit(thread.io(), until);
        const auto first = co_await (socket.async_connect(endpoint, kAwait) || limit.async_wait(kAwait));
        if (first.index() == 1) co_return asio::error::timed_out;
        const auto [failed] = std::get<0>(first);
        if (failed != asio::error::no_buffer_space) co_return failed;
        if (Clock::now() >= until) co_return asio::error::timed_out;
        co_await thread.pause(kQueuePause);
    }
}

// Two members may open a meeting to each other at the same time: see IdClaims::of_member().
class UnderWay {
public:
    UnderWay(std::multiset<NodeId>& opening, NodeId member) : opening_(opening), place_(opening.insert(member)) {}
    ~UnderWay() { opening_.erase(place_); }
    UnderWay(const UnderWay&) = delete;

private:
    std::multiset<NodeId>& opening_;
    std::multiset<NodeId>::iterator place_;
};

}  // namespace

asio::awaitable<Result<Met>> Opening::meet(TimePoint until) {
    ROVE_CO_TRY(Socket socket, co_await connect(until));
    channel_ = std::make_shared<Channel>(std::move(socket), beside_.channels);
    ChannelDeadline deadline(beside_.thread.io(), channel_);
    deadline.set(until);
    const UnderWay under_way(opening_, wanted_.probe ? kNoNode : wanted_.member);
    Result<Met> met = co_await converse(until);
    link_.drop();  // before the failure is reported to the node
    if (was_told(Goodbye::Reason::not_joined) || was_told(Goodbye::Reason::another))
        member_is_gone("another process is at its address");
    if (met && met->peer) co_return met;
    channel_->close(Goodbye{.reason = Goodbye::Reason::refused,
                            .code = met ? ErrorCode::ok : met.error().code(),
                            .text = met ? std::string() : met.error().message()});
    if (met) co_return met;
    if (deadline.passed()) co_return late();
    co_return prefixed(met.error(), fmt::format("meeting the node at {}", wanted_.address));
}

tl::unexpected<Error> Opening::late() const {
    return fail(ErrorCode::timed_out, "the node at {} did not answer within {} ms", wanted_.address,
                host_.options.connect_timeout.count());
}

void Opening::member_is_gone(const char* why) {
    if (wanted_.role == Role::member) beside_.membership.give_up(wanted_.member, wanted_.whom, why);
}

asio::awaitable<Result<Socket>> Opening::connect(TimePoint until) {
    Socket socket(beside_.thread.io());
    asio::error_code failed = asio::error::host_not_found;
    // The endpoints share the time, so that a silent one leaves some to the next.
    auto left = static_cast<int>(wanted_.endpoints.size());
    for (const auto& endpoint : wanted_.endpoints) {
        const TimePoint now = Clock::now();
        failed = co_await connect_to(beside_.thread, socket, endpoint, now + (until - now) / left--);
        if (!failed) co_return socket;
    }
    if (failed == asio::error::timed_out && Clock::now() >= until) co_return late();
    if (failed == asio::error::connection_refused || failed == asio::error_code(ENOENT, asio::system_category()))
        member_is_gone("nobody listens at its address");
    if (failed == asio::error::no_descriptors)
        co_return fail(ErrorCode::overloaded,
                       "the node at {} cannot be met: this process has no descriptors left (ulimit -n)",
                       wanted_.address);
    co_return fail(ErrorCode::disconnected, "no node answers at {} ({}); is `rove node --listen {}` running?",
                   wanted_.address, failed.message(), wanted_.address);
}

asio::awaitable<Result<Met>> Opening::converse(TimePoint until) {
    ROVE_CO_CHECK(co_await check_node());
    ROVE_CO_CHECK(open_link());
    is_heard_ = false;  // false until it answers: the node may drop the connection here, too
    ROVE_CO_CHECK(co_await ask());
    const Result<ByteBuffer> received = co_await channel_->receive(Welcome::kBytesMax);
    is_heard_ = received || received.error().code() != ErrorCode::disconnected;
    if (!received) co_return tl::unexpected<Error>(received.error());
    const ByteBuffer& answer = *received;
    ROVE_CO_CHECK(channel_->heed_goodbye(answer));
    if (wanted_.role == Role::join && wire::control::kind_of(answer) == wire::control::Kind::redirect) {
        ROVE_CO_TRY(Redirect redirect, wire::control::decode<Redirect>(answer));
        co_return Met{.peer = nullptr, .redirect = std::move(redirect.address)};
    }
    ROVE_CO_TRY(const Welcome welcome, wire::control::decode<Welcome>(answer));
    ROVE_CO_CHECK(check_welcome(welcome));
    ROVE_CO_TRY(const ConnectedBy by, co_await open_lane(welcome, until));
    if (wanted_.role == Role::join) beside_.membership.let_in(welcome);
    ROVE_CO_CHECK(co_await channel_->send(encode(Connected{.by = by})));
    ROVE_CO_TRY(const Settled settled, co_await channel_->receive<Settled>());
    co_return settle(welcome, settled);
}

// Says hello. The node answers with a challenge and, on TCP, the proof that it belongs to the same user.
asio::awaitable<Status> Opening::check_node() {
    ROVE_CO_TRY(const bool same_user, channel_->same_user());
    mine_ = random_nonce();
    ROVE_CO_CHECK(co_await channel_->send(encode(Hello{.role = wanted_.role, .nonce = mine_})));
    const Result<Challenge> challenge = co_await channel_->receive<Challenge>();
    is_heard_ = challenge || challenge.error().code() != ErrorCode::disconnected || channel_->farewell();
    if (!challenge) co_return tl::unexpected<Error>(challenge.error());
    theirs_ = challenge->nonce;
    if (same_user) co_return Status();
    ROVE_CO_TRY(const Cookie secret, beside_.cookie.get());
    if (!same(challenge->proof, prove(secret, "node", theirs_, mine_, channel_->remote_endpoint())))
        co_return fail(ErrorCode::refused,
                       "it does not know this user's cookie ({}): it belongs to another user, or uses another --cookie",
                       beside_.cookie.path().string());
    proof_.proof = prove(secret, "peer", theirs_, mine_, channel_->remote_endpoint());
    co_return Status();
}

std::string Opening::spelling() const {
    const auto endpoint = channel_->remote();
    return endpoint ? canonical(*endpoint) : wanted_.address;
}

std::shared_ptr<PeerState> Opening::old_peer() const {
    if (wanted_.old) return wanted_.old;
    if (const MemberEntry* const entry = beside_.members.find(wanted_.member))
        if (std::shared_ptr<PeerState> peer = entry->peer.lock()) return peer;
    return wanted_.role == Role::client ? servers_.at(spelling()) : nullptr;
}

// Opens what this node offers for a direct lane. If its fabric has none, a stream is used.
Status Opening::open_link() {
    link_.choose_engine(old_peer().get(), wanted_.member);
    return link_.open();
}

asio::awaitable<Status> Opening::ask() {
    const OwnIdentity& self = beside_.self;
    wire::control::Request request{.has_residents = !Residents::none(),
                                   .replace = wanted_.replace,
                                   .features = wire::kFeatures,
                                   .triple = std::string(code::host_triple()),
                                   .address = self.address(),
                                   .key = {},
                                   .signature = {},
                                   .certificate = {},
                                   .whom = {},
                                   .offer = link_ ? link_.offer() : ByteBuffer()};
    if (wanted_.role != Role::client) {
        request.key = self.keys().key();
        request.signature = self.keys().sign(wire::control::statement("peer", theirs_, mine_, channel_->bound_there()));
        if (wanted_.role == Role::member) {
            request.certificate = self.certificate();
            request.whom = wanted_.whom;
        }
    }
    ByteBuffer both = encode(proof_);
    const ByteBuffer asked = encode(request);
    both.insert(both.end(), asked.begin(), asked.end());
    co_return co_await channel_->send(std::move(both));
}

// Checks whether it is the node that this one wanted to meet, and whether this node may be what the welcome says.
Status Opening::check_welcome(const Welcome& welcome) {
    if (wanted_.role == Role::client) {
        if (!is_client(welcome.you) || home_of(welcome.you) != welcome.id)
            return fail(ErrorCode::invalid, "it gave an id that is not a client's of its own");
        return {};
    }
    if (is_client(welcome.you) || welcome.you == welcome.id)
        return fail(ErrorCode::invalid, "it gave an id that is not a member's");
    const ByteBuffer statement = wire::control::statement("node", theirs_, mine_, channel_->bound_there());
    if (!signed_by(welcome.key, statement, welcome.signature))
        return fail(ErrorCode::refused, "it does not have the key that it says it has, or showed it to another");
    if (wanted_.role == Role::join) return {};
    if (welcome.id != wanted_.member || welcome.key != wanted_.whom) {
        const Error why(ErrorCode::disconnected, fmt::format("node {} is not there any more: another process is at {}",
                                                             wanted_.member, wanted_.address));
        member_is_gone("another process is at its address");
        return tl::unexpected<Error>(why);
    }
    if (welcome.you != host_.ids.id()) return fail(ErrorCode::invalid, "it takes this node for another one");
    return {};
}

// Opens a direct lane, otherwise a stream.
asio::awaitable<Result<ConnectedBy>> Opening::open_lane(const Welcome& welcome, TimePoint until) {
    std::optional<Error> no_lane;
    if (link_ && !welcome.offer.empty()) {
        const Status reached = link_.connect(welcome.offer);
        if (reached) co_return ConnectedBy::offers;
        no_lane = reached.error();
        if (reached.error().code() != ErrorCode::unsupported) co_return tl::unexpected<Error>(reached.error());
    }
    link_.drop();
    if (!welcome.has_ticket || !link_.has_streams())
        co_return fail(ErrorCode::unsupported,
                       "there is no lane to it{}{}; are both ends started with the same --fabric?", no_lane ? ": " : "",
                       no_lane ? no_lane->message() : "");
    ROVE_CO_CHECK(co_await open_stream(welcome, until));
    co_return ConnectedBy::ticket;
}

asio::awaitable<Status> Opening::open_stream(const Welcome& welcome, TimePoint until) {
    ROVE_CO_TRY(const auto endpoint, channel_->remote());
    Socket socket(beside_.thread.io());
    const asio::error_code failed = co_await connect_to(beside_.thread, socket, endpoint, until);
    if (failed)
        co_return fail(ErrorCode::disconnected, "its second connection, for the lane, failed ({})", failed.message());
    const auto lane = std::make_shared<Channel>(std::move(socket), beside_.channels);
    ChannelDeadline deadline(beside_.thread.io(), lane);
    deadline.set(until);
    ROVE_CO_CHECK(lane->same_user());
    ROVE_CO_CHECK(co_await lane->send(encode(LaneHello{.ticket = welcome.ticket})));
    const int descriptor = lane->release();
    if (descriptor < 0) co_return fail(ErrorCode::disconnected, "its second connection, for the lane, ended");
    co_return link_.open_stream(descriptor, stream_keys(welcome.secret, false));
}

// The link becomes a peer's, unless this side has made another one in the meantime.
Result<Met> Opening::settle(const Welcome& welcome, const Settled& settled) {
    const bool member = wanted_.role != Role::client;
    if (wanted_.role == Role::join) ROVE_CHECK(beside_.membership.joined(welcome, settled));
    if (!welcome.has_residents && !Residents::none())
        code::expect_to_send();  // functions that this program calls there have to travel
    const std::shared_ptr<PeerState> old = old_peer();
    if (wanted_.role == Role::member && beside_.members.find(wanted_.member)->key != wanted_.whom)
        return fail(ErrorCode::disconnected, "node {} became another process while this one was met", wanted_.member);
    Meeting meeting{.peer = {.id = welcome.id,
                             .my_id = welcome.you,
                             .member = member,
                             .process = welcome.key,
                             .address = old ? std::string() : wanted_.address,
                             .triple = welcome.triple,
                             .node_count = welcome.count,
                             .has_residents = welcome.has_residents,
                             .features = welcome.features & wire::kFeatures},
                    .resident = welcome.resident,
                    .replace = wanted_.replace,
                    .hang_up = hang_up_of(beside_.thread.gate(), channel_)};
    Result<Peers::Adopted> adopted = link_.adopt(std::move(meeting), old);
    if (!adopted) return tl::unexpected<Error>(adopted.error());
    Met met{.peer = adopted->peer, .id = welcome.id, .redirect = {}};
    if (!adopted->taken) {
        channel_->close(Goodbye{.reason = Goodbye::Reason::cut, .text = "another link was made first"});
        return met;
    }
    LinkWatch::Unwatched unwatched(
        beside_.links, {.peer = adopted->peer, .meeting = adopted->meeting, .member = member ? welcome.id : kNoNode});
    if (member) {
        const auto before = beside_.membership.admit(beside_.members.find(welcome.id)->as_member(welcome.id));
        beside_.membership.met(welcome.id, *adopted, channel_, before, wanted_.role == Role::join);
        beside_.members.find(welcome.id)->answers_there = true;
    } else {
        servers_.met(spelling(), adopted->peer);
    }
    beside_.links.begin(channel_, std::move(unwatched), "watching a node");
    return met;
}

}  // namespace rove::control
