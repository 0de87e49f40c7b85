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

// A guest that has proven who it is, and asks to be let in. What it was given on the way is given back unless it settles.
class Control::Arrival {
public:
    Arrival(Control& control, Guest& guest, Request request)
        : control_(control), guest_(guest), request_(std::move(request)), link_(control.host_.fabric) {}
    ~Arrival() {
        if (guest_.role == Role::join && you_ != kNoNode) control_.members_.take_back(you_);
        if (counted_ != nullptr) --counted_->incoming;
    }
    Arrival(const Arrival&) = delete;

    [[nodiscard]] asio::awaitable<Status> let_in();

private:
    [[nodiscard]] bool is_member() const { return guest_.role != Role::client; }
    [[nodiscard]] Status check_member() const;
    // The member that gives ids; null: this node does.
    [[nodiscard]] const MemberEntry* giver_of_ids() const;
    [[nodiscard]] asio::awaitable<Status> give_name();
    [[nodiscard]] asio::awaitable<Result<NodeId>> id_of_member();
    [[nodiscard]] Status open_offered_link();
    [[nodiscard]] Welcome welcome();
    [[nodiscard]] asio::awaitable<Status> await_lane(const wire::control::LaneSecret& secret);
    [[nodiscard]] Status check_id_is_free();
    [[nodiscard]] Status settle();

    Control& control_;
    Guest& guest_;
    const Request request_;
    ClientIndex client_;
    NodeId you_ = kNoNode;
    MemberEntry* counted_ = nullptr;  // this meeting is, in its `incoming`; null: the member was not known when it came
    PendingLink link_;
    std::optional<ExpectedLanes::Place> lane_;  // of a stream
};

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
    Arrival arrival(*this, guest, std::move(request));
    co_return co_await arrival.let_in();
}

// Is it the member that it says it is? Of two members that open a meeting to each other at once the lower id's goes on: that
// node refuses the other's, and waits for none itself; the other one lets it in. So there is one link whichever way their
// messages cross, because one node alone decides.
asio::awaitable<Result<NodeId>> Control::Arrival::id_of_member() {
    const NodeId id = request_.certificate.id;
    if (id == control_.host_.routes.id())
        co_return fail(ErrorCode::refused, "it says that it is node {}, which this node is", id);
    const MemberEntry* entry = control_.members_.find(id);
    const bool known = entry != nullptr && entry->is_known_as(request_.key, request_.address);
    if (!known) {
        if (id >= control_.members_.count() + kIdsAheadMax)
            co_return fail(ErrorCode::refused,
                           "it says that it is node {}, where {} are known; try again when more are", id,
                           control_.members_.count());
        const NodeId issuer_id = request_.certificate.issuer;
        const MemberEntry* issuer = control_.members_.find(issuer_id);
        const ByteBuffer statement = wire::control::statement(request_.certificate, request_.address, request_.key);
        if (request_.certificate.cluster != control_.cluster_ || issuer == nullptr ||
            !signed_by(issuer->key, statement, request_.certificate.signature) ||
            !(control_.members_.gave_ids(issuer_id, request_.certificate.generation) ||
              co_await control_.gives_ids_now(issuer_id)))
            co_return fail(ErrorCode::refused,
                           "it says that it is node {} of this cluster, and no member that gives ids says so", id);
        entry = control_.members_.find(id);
        if (entry != nullptr && entry->is_there()) {  // the process before it may be dead, and that not noticed yet
            const wire::control::PublicKey former = entry->key;
            (void)co_await control_.meet_member(id, entry->state == MemberEntry::State::living);
            entry = control_.members_.find(id);
            if (entry != nullptr && entry->is_there() && entry->key == former)
                co_return fail(ErrorCode::refused, "it says that it is node {}, and another process that is lives", id);
        }
        if (entry != nullptr && entry->generation > request_.certificate.generation)
            co_return fail(ErrorCode::refused, "node {} is another process by now", id);
    }
    const std::shared_ptr<PeerState> peer = entry != nullptr ? entry->peer.lock() : nullptr;
    const bool linked = known && peer && control_.host_.peers.linked(*peer) && !request_.replace;
    if (linked || (control_.opening_.contains(id) && control_.host_.routes.id() < id)) {
        guest_.reason = Goodbye::Reason::linked;
        co_return fail(ErrorCode::refused, "node {} and node {} have a link", control_.host_.routes.id(), id);
    }
    co_return id;
}

// May it still have the id, after what others did while this meeting was under way?
Status Control::Arrival::check_id_is_free() {
    const MemberEntry* entry = control_.members_.find(you_);
    const bool mine = entry != nullptr && entry->key == request_.key;
    const bool is_free = guest_.role == Role::join ? mine && entry->state == MemberEntry::State::joining
                                                   : entry == nullptr || mine ||
                                                         (entry->state == MemberEntry::State::gone &&
                                                          entry->generation <= request_.certificate.generation);
    if (is_free) return {};
    return fail(ErrorCode::refused, "node {} became another process while this one was met", you_);
}

asio::awaitable<Status> Control::Arrival::let_in() {
    if (is_member()) ROVE_CO_CHECK(check_member());
    if (guest_.role == Role::join) {
        if (const MemberEntry* giver = giver_of_ids()) {
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

Status Control::Arrival::check_member() const {
    if (control_.address_.empty())
        return fail(ErrorCode::refused, "this process is a client; it is no member of anything");
    const ByteBuffer shown = wire::control::statement("peer", guest_.mine, guest_.theirs, guest_.channel->bound_here());
    if (!signed_by(request_.key, shown, request_.signature))
        return fail(ErrorCode::refused, "it does not have the key that it says it has, or showed it to another");
    ROVE_TRY(const Address address, parse_address(request_.address));
    ROVE_CHECK(resolve(address, true));
    return {};
}

const MemberEntry* Control::Arrival::giver_of_ids() const {
    const NodeId first = control_.members_.lowest();
    return first != control_.host_.routes.id() && first != kNoNode ? control_.members_.find(first) : nullptr;
}

asio::awaitable<Status> Control::Arrival::give_name() {
    if (guest_.role == Role::client) {
        ROVE_CO_TRY(client_, control_.clients_.take());
        you_ = client_id(control_.host_.routes.id(), client_.value());
    } else if (guest_.role == Role::member) {
        ROVE_CO_TRY(you_, co_await id_of_member());
        counted_ = control_.members_.find(you_);
        if (counted_ != nullptr) ++counted_->incoming;
    } else {
        ROVE_CO_TRY(you_, co_await control_.give_id(request_));
    }
    co_return Status();
}

Status Control::Arrival::open_offered_link() {
    LockedFabric& fabric = control_.host_.fabric;
    if (!request_.offer.empty()) {
        Result<std::unique_ptr<fabric::Link>> opened = fabric.open_link();
        if (opened) {
            link_.set(std::move(*opened));
            if (const Status reached = fabric.connect(*link_, request_.offer); !reached) {
                if (reached.error().code() != ErrorCode::unsupported || !fabric.has_streams()) return reached;
                link_.drop();
            }
        } else if (opened.error().code() != ErrorCode::unsupported || !fabric.has_streams()) {
            return tl::unexpected<Error>(opened.error());
        }
    }
    if (!link_ && !fabric.has_streams())
        return fail(ErrorCode::unsupported,
                    "there is no lane: no transport reaches both ends; are both ends started with the same --fabric?");
    if (fabric.has_streams()) lane_.emplace(control_.expected_lanes_, control_.thread_.io());
    return {};
}

Welcome Control::Arrival::welcome() {
    const Host& host = control_.host_;
    Welcome welcome{.has_residents = !Residents::none(),
                    .has_ticket = lane_.has_value(),
                    .features = wire::control::kFeatures,
                    .id = host.routes.id(),
                    .you = you_,
                    .count = std::max(host.routes.node_count(), is_client(you_) ? 1 : you_ + 1),
                    .cluster = control_.cluster_,
                    .key = {},
                    .signature = {},
                    .ticket = lane_ ? lane_->ticket() : wire::control::Ticket{},
                    .secret = random_id<wire::control::LaneSecret>(),
                    .triple = std::string(code::host_triple()),
                    .resident = host.functions.digests(),
                    .offer = link_ ? link_->offer() : ByteBuffer()};
    if (is_member()) {
        welcome.key = control_.keys_.key();
        welcome.signature = control_.keys_.sign(
            wire::control::statement("node", guest_.mine, guest_.theirs, guest_.channel->bound_here()));
    }
    return welcome;
}

// The guest chooses: the link that it offered, or a stream.
asio::awaitable<Status> Control::Arrival::await_lane(const wire::control::LaneSecret& secret) {
    const Result<Connected> connected = co_await guest_.channel->receive<Connected>();
    if (!connected) co_return prefixed(connected.error(), "it could not open its lane");
    if (connected->lane != Lane::stream) {
        if (!link_) co_return fail(ErrorCode::invalid, "it has connected to an offer that this node did not make");
        co_return Status();
    }
    link_.drop();
    if (!lane_) co_return fail(ErrorCode::invalid, "it wants a stream, which this node does not have");
    ROVE_CO_TRY(const int socket, co_await lane_->wait(control_.host_.options.connect_timeout));
    Result<std::unique_ptr<fabric::Link>> stream = control_.host_.fabric.open_stream(socket, stream_keys(secret, true));
    if (!stream) co_return tl::unexpected<Error>(stream.error());
    link_.set(std::move(*stream));
    co_return Status();
}

// The link becomes a peer's, and everybody who is to know of it is told.
Status Control::Arrival::settle() {
    const Host& host = control_.host_;
    Members& members = control_.members_;
    const bool member = is_member();
    if (member) ROVE_CHECK(check_id_is_free());
    MemberEntry* entry = member ? members.find(you_) : nullptr;
    const bool same_place = entry != nullptr && entry->address == request_.address;
    const std::shared_ptr<PeerState> old = same_place ? entry->peer.lock() : nullptr;
    Meeting meeting{.id = you_,
                    .my_id = host.routes.id(),
                    .member = member,
                    .process = request_.key,
                    .address = member && !old ? request_.address : std::string(),
                    .triple = request_.triple,
                    .node_count = host.routes.node_count(),
                    .resident = {},
                    .has_residents = request_.has_residents,
                    .replace = true,
                    .features = request_.features & wire::control::kFeatures,
                    .hang_up = hang_up_of(control_.thread_.gate(), guest_.channel)};
    Result<Peers::Adopted> adopted = host.peers.adopt(std::move(meeting), link_.take(), old);
    if (!adopted) return tl::unexpected<Error>(adopted.error());
    Unwatched unwatched(control_, {.peer = adopted->peer,
                                   .meeting = adopted->meeting,
                                   .member = member ? you_ : kNoNode,
                                   .client = std::move(client_)});
    Settled settled;
    if (guest_.role == Role::join) {
        settled.certificate = control_.certify(you_);
        settled.members = members.list(you_);
    }
    const bool news =
        member && (entry == nullptr || entry->trust != MemberEntry::Trust::proven || entry->key != request_.key);
    // The generation comes from a certificate that was checked. A known member's certificate is not checked again.
    const std::uint32_t generation = guest_.role == Role::join ? settled.certificate.generation
                                     : entry != nullptr && entry->is_known_as(request_.key, request_.address)
                                         ? entry->generation
                                         : request_.certificate.generation;
    if (member) {  // who hears that it has settled finds itself counted here
        members.set({you_, generation, request_.address, request_.key}, MemberEntry::State::lost);
        if (guest_.role == Role::join) members.find(you_)->let_in_here = true;
        host.routes.set_node_count(members.count());
    }
    guest_.channel->say(encode(settled));  // before anything else is said there
    if (member) control_.member_is_here(you_, *adopted, guest_.channel);
    if (news) control_.tell({{you_, generation, request_.address, request_.key}}, you_);
    control_.thread_.spawn(control_.watch(guest_.channel, std::move(unwatched)), "watching a peer");
    return {};
}

}  // namespace rove::control
