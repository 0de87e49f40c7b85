// A meeting as the node sees it that was called on: from a connection's acceptance to the lane. What comes after is watch()'s.
#include <algorithm>
#include <asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "code/own_code.hpp"
#include "control/co_try.hpp"
#include "control/control.hpp"
#include "program/residents.hpp"

namespace rove::control {
namespace {

using wire::control::Challenge;
using wire::control::Connected;
using wire::control::Hello;
using wire::control::Kind;
using wire::control::Lane;
using wire::control::LaneHello;
using wire::control::ProofGiven;
using wire::control::Redirect;
using wire::control::Request;
using wire::control::Settled;
using wire::control::Welcome;

}  // namespace

asio::awaitable<void> Control::receive_one(std::shared_ptr<Channel> channel) {
    Strangers::Place stranger(strangers_, channel);
    Guest guest{.channel = channel, .mine = {}, .theirs = {}};
    std::string from = channel->remote_endpoint();
    if (from == "unix") from = channel->origin();
    Status met;
    try {
        met = co_await welcome(guest, stranger);
    } catch (const std::bad_alloc&) {
        met = fail(ErrorCode::overloaded, "memory ran out");
    }
    if (met) co_return;
    const std::string failed = fmt::format("a meeting with {} failed: {}", from, met.error().message());
    if (guest.reason == Goodbye::Reason::linked)  // nothing has: two members have met each other at once
        log().debug("{}: {}", host_.name(), failed);
    else
        complaints_.say(host_.name(), failed);
    channel->close(Goodbye{.reason = guest.reason, .code = met.error().code(), .text = met.error().message()});
}

// Up to the proof that it is the same user who comes.
asio::awaitable<Status> Control::welcome(Guest& guest, Strangers::Place& stranger) {
    const std::shared_ptr<Channel> channel = guest.channel;
    ROVE_CO_TRY(const bool same_user, channel->same_user());
    Deadline deadline(thread_.io(), channel);
    deadline.set(std::min<std::chrono::milliseconds>(kHelloTimeMax, host_.options.connect_timeout));
    ROVE_CO_TRY(const ByteBuffer first, co_await channel->receive(std::max(Hello::kBytesMax, LaneHello::kBytesMax)));
    if (wire::control::kind_of(first) == Kind::lane) {
        ROVE_CO_TRY(const LaneHello lane, wire::control::decode<LaneHello>(first));
        co_return expected_lanes_.bring(*channel, lane.ticket);
    }
    ROVE_CO_TRY(const Hello hello, wire::control::decode<Hello>(first));
    guest.role = hello.role;
    guest.theirs = hello.nonce;
    deadline.set(host_.options.connect_timeout);
    if (!identity_known_ && guest.role == Role::member) {
        guest.reason = Goodbye::Reason::not_joined;
        co_return fail(ErrorCode::refused, "this process is a member of no cluster yet");
    }
    while (!identity_known_ && channel->is_open())
        co_await thread_.pause(kIdentityLook);  // this node is joining others itself
    if (!identity_known_) co_return fail(ErrorCode::timed_out, "this node is a member of no cluster yet");
    guest.mine = random_nonce();
    Challenge challenge{.nonce = guest.mine, .proof = {}};
    Proof expected;
    if (!same_user) {
        ROVE_CO_TRY(const Cookie secret, cookie());
        challenge.proof = prove(secret, "node", guest.mine, guest.theirs, channel->local_endpoint());
        expected = prove(secret, "peer", guest.mine, guest.theirs, channel->local_endpoint());
    }
    stranger.challenged();
    ROVE_CO_CHECK(co_await channel->send(encode(challenge)));
    ROVE_CO_TRY(const ProofGiven given, co_await channel->receive<ProofGiven>());
    if (!same_user && !same(given.proof, expected))
        co_return fail(ErrorCode::refused,
                       "a process at {} does not know this node's cookie: it belongs to another user, or uses "
                       "another --cookie",
                       channel->remote_endpoint());
    stranger.proven();
    if (meetings_ >= kMeetingsMax)
        co_return fail(ErrorCode::overloaded, "{} has {} meetings under way, the most there may be; try again",
                       host_.name(), kMeetingsMax);
    const Counted meeting(meetings_);
    ROVE_CO_TRY(Request request, co_await channel->receive<Request>());
    co_return co_await let_in(guest, std::move(request));
}

// Is it the member that it says it is? Of two members that open a meeting to each other at once the lower id's goes on: that
// node refuses the other's, and waits for none itself; the other one lets it in. So there is one link whichever way their
// messages cross, because one node alone decides.
asio::awaitable<Result<NodeId>> Control::id_of_member(Guest& guest, const Request& request) {
    const NodeId id = request.certificate.id;
    if (id == host_.routes.id())
        co_return fail(ErrorCode::refused, "it says that it is node {}, which this node is", id);
    const MemberEntry* entry = members_.find(id);
    const bool known = entry != nullptr && entry->is_known_as(request.key, request.address);
    if (!known) {
        if (id >= members_.count() + kIdsAheadMax)
            co_return fail(ErrorCode::refused,
                           "it says that it is node {}, where {} are known; try again when more are", id,
                           members_.count());
        const NodeId issuer_id = request.certificate.issuer;
        const MemberEntry* issuer = members_.find(issuer_id);
        const ByteBuffer statement = wire::control::statement(request.certificate, request.address, request.key);
        if (request.certificate.cluster != cluster_ || issuer == nullptr ||
            !signed_by(issuer->key, statement, request.certificate.signature) || !co_await gives_ids_now(issuer_id))
            co_return fail(ErrorCode::refused,
                           "it says that it is node {} of this cluster, and no member that gives ids says so", id);
        entry = members_.find(id);
        if (entry != nullptr && entry->is_there()) {  // the process before it may be dead, and that not noticed yet
            const wire::control::PublicKey former = entry->key;
            (void)co_await meet_member(id, entry->state == MemberEntry::State::living);
            entry = members_.find(id);
            if (entry != nullptr && entry->is_there() && entry->key == former)
                co_return fail(ErrorCode::refused, "it says that it is node {}, and another process that is lives", id);
        }
        if (entry != nullptr && entry->generation > request.certificate.generation)
            co_return fail(ErrorCode::refused, "node {} is another process by now", id);
    }
    const std::shared_ptr<PeerState> peer = entry != nullptr ? entry->peer.lock() : nullptr;
    const bool linked = known && peer && host_.peers.linked(*peer) && !request.replace;
    if (linked || (opening_.contains(id) && host_.routes.id() < id)) {
        guest.reason = Goodbye::Reason::linked;
        co_return fail(ErrorCode::refused, "node {} and node {} have a link", host_.routes.id(), id);
    }
    co_return id;
}

// May it still have the id, after what others did while this meeting was under way?
Status Control::check_id_is_free(Role role, NodeId id, const Request& request) {
    const MemberEntry* entry = members_.find(id);
    const bool mine = entry != nullptr && entry->key == request.key;
    const bool is_free = role == Role::join ? mine && entry->state == MemberEntry::State::joining
                                            : entry == nullptr || mine ||
                                                  (entry->state == MemberEntry::State::gone &&
                                                   entry->generation <= request.certificate.generation);
    if (is_free) return {};
    return fail(ErrorCode::refused, "node {} became another process while this one was met", id);
}

asio::awaitable<Status> Control::let_in(Guest& guest, Request request) {
    const std::shared_ptr<Channel> channel = guest.channel;
    const bool member = guest.role != Role::client;
    if (member) {
        if (address_.empty())
            co_return fail(ErrorCode::refused, "this process is a client; it is no member of anything");
        const ByteBuffer shown = wire::control::statement("peer", guest.mine, guest.theirs, channel->bound_here());
        if (!signed_by(request.key, shown, request.signature))
            co_return fail(ErrorCode::refused, "it does not have the key that it says it has, or showed it to another");
        ROVE_CO_TRY(const Address address, parse_address(request.address));
        ROVE_CO_CHECK(resolve(address, true));
    }
    if (guest.role == Role::join) {
        const NodeId first = members_.lowest();
        if (first != host_.routes.id() && first != kNoNode) {
            ROVE_CO_CHECK(co_await channel->send(encode(Redirect{.address = members_.find(first)->address})));
            channel->close();
            co_return Status();
        }
    }
    ClientIndex client;
    NodeId you = kNoNode;
    if (guest.role == Role::client) {
        ROVE_CO_TRY(client, clients_.take());
        you = client_id(host_.routes.id(), client.value());
    } else if (guest.role == Role::member) {
        ROVE_CO_TRY(you, co_await id_of_member(guest, request));
    } else {
        ROVE_CO_TRY(you, co_await give_id(request));
    }
    // Given back whatever happens on the way.
    struct Coming {
        Control& control;
        NodeId id;
        Role role;
        MemberEntry* counted;  // this meeting in its `incoming`; null: the member was not known when it came
        ~Coming() {
            if (role == Role::join) control.members_.take_back(id);
            if (counted != nullptr) --counted->incoming;
        }
    };
    const Coming coming{*this, you, guest.role, guest.role == Role::member ? members_.find(you) : nullptr};
    if (coming.counted != nullptr) ++coming.counted->incoming;

    PendingLink link(host_.fabric);
    if (!request.offer.empty()) {
        Result<std::unique_ptr<fabric::Link>> opened = host_.fabric.open_link();
        if (opened) {
            link.set(std::move(*opened));
            if (const Status reached = host_.fabric.connect(*link, request.offer); !reached) {
                if (reached.error().code() != ErrorCode::unsupported || !host_.fabric.has_streams()) co_return reached;
                link.drop();
            }
        } else if (opened.error().code() != ErrorCode::unsupported || !host_.fabric.has_streams()) {
            co_return tl::unexpected<Error>(opened.error());
        }
    }
    if (!link && !host_.fabric.has_streams())
        co_return fail(
            ErrorCode::unsupported,
            "there is no lane: no transport reaches both ends; are both ends started with the same --fabric?");
    std::optional<ExpectedLanes::Place> lane;
    if (host_.fabric.has_streams()) lane.emplace(expected_lanes_, thread_.io());

    Welcome welcome{.has_residents = !Residents::none(),
                    .has_ticket = lane.has_value(),
                    .features = wire::control::kFeatures,
                    .id = host_.routes.id(),
                    .you = you,
                    .count = std::max(host_.routes.node_count(), is_client(you) ? 1 : you + 1),
                    .cluster = cluster_,
                    .key = {},
                    .signature = {},
                    .ticket = lane ? lane->ticket() : wire::control::Ticket{},
                    .secret = random_id<wire::control::LaneSecret>(),
                    .triple = std::string(code::host_triple()),
                    .resident = host_.functions.digests(),
                    .offer = link ? link->offer() : ByteBuffer()};
    if (member) {
        welcome.key = keys_.key();
        welcome.signature =
            keys_.sign(wire::control::statement("node", guest.mine, guest.theirs, channel->bound_here()));
    }
    const wire::control::LaneSecret secret = welcome.secret;
    ROVE_CO_CHECK(co_await channel->send(encode(welcome)));
    const Result<Connected> connected = co_await channel->receive<Connected>();
    if (!connected) co_return prefixed(connected.error(), "it could not open its lane");
    if (connected->lane == Lane::stream) {
        link.drop();
        if (!lane) co_return fail(ErrorCode::invalid, "it wants a stream, which this node does not have");
        ROVE_CO_TRY(const int socket, co_await lane->wait(host_.options.connect_timeout));
        Result<std::unique_ptr<fabric::Link>> stream = host_.fabric.open_stream(socket, stream_keys(secret, true));
        if (!stream) co_return tl::unexpected<Error>(stream.error());
        link.set(std::move(*stream));
    } else if (!link) {
        co_return fail(ErrorCode::invalid, "it has connected to an offer that this node did not make");
    }

    if (member) ROVE_CO_CHECK(check_id_is_free(guest.role, you, request));
    MemberEntry* entry = member ? members_.find(you) : nullptr;
    const bool same_place = entry != nullptr && entry->address == request.address;
    const std::shared_ptr<PeerState> old = same_place ? entry->peer.lock() : nullptr;
    Meeting meeting{.id = you,
                    .my_id = host_.routes.id(),
                    .member = member,
                    .process = request.key,
                    .address = member && !old ? request.address : std::string(),
                    .triple = request.triple,
                    .node_count = host_.routes.node_count(),
                    .resident = {},
                    .has_residents = request.has_residents,
                    .replace = true,
                    .features = request.features & wire::control::kFeatures,
                    .hang_up = hang_up_of(thread_.gate(), channel)};
    Result<Peers::Adopted> adopted = host_.peers.adopt(std::move(meeting), link.take(), old);
    if (!adopted) co_return tl::unexpected<Error>(adopted.error());
    Unwatched unwatched(*this, {.peer = adopted->peer,
                                .meeting = adopted->meeting,
                                .member = member ? you : kNoNode,
                                .client = std::move(client)});
    Settled settled;
    if (guest.role == Role::join) {
        settled.certificate = certify(you);
        settled.members = members_.list(you);
    }
    const bool news =
        member && (entry == nullptr || entry->trust != MemberEntry::Trust::proven || entry->key != request.key);
    // The generation comes from a certificate that was checked. A known member's certificate is not checked again.
    const std::uint32_t generation = guest.role == Role::join ? settled.certificate.generation
                                     : entry != nullptr && entry->is_known_as(request.key, request.address)
                                         ? entry->generation
                                         : request.certificate.generation;
    if (member) {  // who hears that it has settled finds itself counted here
        members_.set({you, generation, request.address, request.key}, MemberEntry::State::lost);
        host_.routes.set_node_count(members_.count());
    }
    channel->say(encode(settled));  // before anything else is said there
    if (member) member_is_here(you, *adopted, channel);
    if (news) tell({{you, generation, request.address, request.key}}, you);
    thread_.spawn(watch(channel, std::move(unwatched)), "watching a peer");
    co_return Status();
}

}  // namespace rove::control
