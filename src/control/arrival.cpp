#include "control/arrival.hpp"

#include <algorithm>

#include "code/own_code.hpp"
#include "control/address.hpp"
#include "control/co_try.hpp"
#include "program/residents.hpp"
#include "wire/kinds.hpp"

namespace rove::control {

using wire::control::Connected;
using wire::control::ConnectedBy;
using wire::control::Goodbye;
using wire::control::Member;
using wire::control::Redirect;
using wire::control::Role;
using wire::control::Settled;
using wire::control::Welcome;

asio::awaitable<Status> Arrival::let_in() {
    if (is_member()) ROVE_CO_CHECK(check_member());
    if (guest_.role == Role::join) {
        if (const MemberEntry* giver = beside_.ids.giver()) {
            ROVE_CO_CHECK(co_await guest_.channel->send(encode(Redirect{.address = giver->address})));
            guest_.channel->close();
            co_return Status();
        }
    }
    ROVE_CO_CHECK(co_await give_name());
    ROVE_CO_CHECK(open_offered_link());
    const Welcome sent = welcome();
    ROVE_CO_CHECK(co_await guest_.channel->send(encode(sent)));
    ROVE_CO_CHECK(co_await await_lane(sent.secret));
    co_return settle();
}

Status Arrival::check_member() const {
    if (beside_.self.address().empty())
        return fail(ErrorCode::refused, "this process is a client; it is no member of anything");
    const ByteBuffer shown = wire::control::statement("peer", guest_.mine, guest_.theirs, guest_.channel->bound_here());
    if (!signed_by(request_.key, shown, request_.signature))
        return fail(ErrorCode::refused, "it does not have the key that it says it has, or showed it to another");
    ROVE_TRY(const Address address, parse_address(request_.address));
    ROVE_CHECK(resolve(address, true));
    return {};
}

asio::awaitable<Status> Arrival::give_name() {
    if (guest_.role == Role::client) {
        ROVE_CO_TRY(client_, clients_.take());
        you_ = client_id(host_.ids.id(), client_.value());
    } else if (guest_.role == Role::member) {
        ROVE_CO_TRY(you_, co_await id_of_member());
        counted_ = members_.find(you_);
        if (counted_ != nullptr) ++counted_->incoming;
    } else {
        ROVE_CO_TRY(you_, co_await beside_.ids.give(request_));
    }
    co_return Status();
}

asio::awaitable<Result<NodeId>> Arrival::id_of_member() {
    if (request_.whom != beside_.self.keys().key()) {
        guest_.reason = Goodbye::Reason::another;
        // The guest does not know this process. If its certificate is valid, this node opens a meeting with it.
        beside_.membership.sought_by(member_of(request_));
        co_return fail(ErrorCode::refused, "it wants to meet the process that was node {} before this one",
                       host_.ids.id());
    }
    ROVE_CO_TRY(const IdClaims::OfMember claimed, co_await beside_.ids.of_member(request_));
    if (claimed.is_linked) {
        guest_.reason = Goodbye::Reason::linked;
        co_return fail(ErrorCode::refused, "node {} and node {} have a link", host_.ids.id(), claimed.id);
    }
    co_return claimed.id;
}

std::shared_ptr<PeerState> Arrival::old_peer() const {
    const MemberEntry* const entry = is_member() ? members_.find(you_) : nullptr;
    return entry != nullptr && entry->address == request_.address ? entry->peer.lock() : nullptr;
}

Status Arrival::open_offered_link() {
    link_.choose_engine(old_peer().get(), is_member() ? you_ : kNoNode);
    if (!request_.offer.empty()) {
        ROVE_CHECK(link_.open());
        const Status reached = link_ ? link_.connect(request_.offer) : Status();
        if (!reached) {
            if (reached.error().code() != ErrorCode::unsupported || !link_.has_streams()) return reached;
            link_.drop();
        }
    }
    if (!link_ && !link_.has_streams())
        return fail(ErrorCode::unsupported,
                    "there is no lane: no transport reaches both ends; are both ends started with the same --fabric?");
    if (link_.has_streams()) lane_.emplace(expected_lanes_, beside_.thread.io());
    return {};
}

Welcome Arrival::welcome() {
    Welcome welcome{.has_residents = !Residents::none(),
                    .has_ticket = lane_.has_value(),
                    .features = wire::kFeatures,
                    .id = host_.ids.id(),
                    .you = you_,
                    .count = std::max(host_.ids.node_count(), is_client(you_) ? 1 : you_ + 1),
                    .key = {},
                    .signature = {},
                    .ticket = lane_ ? lane_->ticket() : wire::control::Ticket{},
                    .secret = random_id<wire::control::LaneSecret>(),
                    .triple = std::string(code::host_triple()),
                    .resident = host_.functions.digests(),
                    .offer = link_ ? link_.offer() : ByteBuffer()};
    if (is_member()) {
        welcome.key = beside_.self.keys().key();
        welcome.signature = beside_.self.keys().sign(
            wire::control::statement("node", guest_.mine, guest_.theirs, guest_.channel->bound_here()));
    }
    return welcome;
}

// The guest chooses the link that it offered, or a stream.
asio::awaitable<Status> Arrival::await_lane(const wire::control::LaneSecret& secret) {
    const Result<Connected> connected = co_await guest_.channel->receive<Connected>();
    if (!connected) co_return prefixed(connected.error(), "the node that connected could not open its lane");
    if (connected->by != ConnectedBy::ticket) {
        if (!link_) co_return fail(ErrorCode::invalid, "it has connected to an offer that this node did not make");
        co_return Status();
    }
    link_.drop();
    if (!lane_) co_return fail(ErrorCode::invalid, "it wants a stream, which this node does not have");
    ROVE_CO_TRY(const int socket, co_await lane_->wait(host_.options.connect_timeout));
    co_return link_.open_stream(socket, stream_keys(secret, true));
}

// The link becomes a peer's, and the members that must know of it are informed.
Status Arrival::settle() {
    const bool member = is_member();
    if (member) ROVE_CHECK(beside_.ids.check_is_free(you_, guest_.role, request_));
    const std::shared_ptr<PeerState> old = old_peer();
    Meeting meeting{.peer = {.id = you_,
                             .my_id = host_.ids.id(),
                             .member = member,
                             .process = request_.key,
                             .address = member && !old ? request_.address : std::string(),
                             .triple = request_.triple,
                             .node_count = host_.ids.node_count(),
                             .has_residents = request_.has_residents,
                             .features = request_.features & wire::kFeatures},
                    .resident = {},
                    .replace = true,
                    .hang_up = hang_up_of(beside_.thread.gate(), guest_.channel)};
    Result<Peers::Adopted> adopted = link_.adopt(std::move(meeting), old);
    if (!adopted) return tl::unexpected<Error>(adopted.error());
    LinkWatch::Unwatched unwatched(beside_.links, {.peer = adopted->peer,
                                                   .meeting = adopted->meeting,
                                                   .member = member ? you_ : kNoNode,
                                                   .client = std::move(client_)});
    Settled settled;
    MemberEntry::Trust before = MemberEntry::Trust::none;
    if (member) {  // so that the node that learns of the settling finds itself counted here
        const bool joins = guest_.role == Role::join;
        const Member you = joins ? beside_.membership.certify(you_) : member_of(request_);
        before = beside_.membership.admit(you);
        if (joins) {
            settled.certificate = {.id = you.id, .generation = you.generation, .signature = you.signature};
            settled.cluster = beside_.self.cluster();
            settled.members = members_.list(you_);
        }
    }
    guest_.channel->say(encode(settled));  // sent before any other message there
    if (member) beside_.membership.met(you_, *adopted, guest_.channel, before, guest_.role == Role::join);
    beside_.links.begin(guest_.channel, std::move(unwatched), "watching a peer");
    return {};
}

}  // namespace rove::control
