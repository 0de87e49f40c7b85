// A meeting as its opener sees it.
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/use_awaitable.hpp>
#include <random>

#include "base/log.hpp"
#include "code/own_code.hpp"
#include "control/co_try.hpp"
#include "control/control.hpp"
#include "program/residents.hpp"

namespace rove::control {
namespace {

constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);
constexpr auto kQueuePause = std::chrono::milliseconds(5);
// A connection that the node dropped before its welcome, without a goodbye (there were too many), is opened again: times in all,
// within the time for a meeting.
constexpr unsigned kTriesMax = 8;
// The pause after each try but the last: doubles up to 128 ms, minus a random part, so that openers that were dropped together do not
// return together.
std::chrono::milliseconds pause_after(unsigned tries) {
    const unsigned longest = 1U << tries;
    std::random_device random;
    return std::chrono::milliseconds(std::uniform_int_distribution(longest / 2, longest)(random));
}

using wire::control::Challenge;
using wire::control::Connected;
using wire::control::Hello;
using wire::control::Lane;
using wire::control::LaneHello;
using wire::control::ProofGiven;
using wire::control::Redirect;
using wire::control::Settled;
using wire::control::Welcome;

// timed_out at that time at the latest. Where more wait to be accepted than may, TCP tries again by itself, and a Unix socket fails at once.
asio::awaitable<asio::error_code> connect(ControlThread& thread, Socket& socket,
                                          asio::generic::stream_protocol::endpoint endpoint, TimePoint until) {
    using namespace asio::experimental::awaitable_operators;  // NOLINT(google-build-using-namespace)
    for (;;) {
        asio::error_code error;
        socket.close(error);
        asio::steady_timer limit(thread.io(), until);
        const auto first = co_await (socket.async_connect(endpoint, kAwait) || limit.async_wait(kAwait));
        if (first.index() == 1) co_return asio::error::timed_out;
        const auto [failed] = std::get<0>(first);
        if (failed != asio::error::no_buffer_space) co_return failed;
        if (Clock::now() >= until) co_return asio::error::timed_out;
        co_await thread.pause(kQueuePause);
    }
}

}  // namespace

fabric::StreamKeys stream_keys(const wire::control::LaneSecret& secret, bool node) {
    std::uint64_t to_opener = 0;
    std::uint64_t to_node = 0;
    std::memcpy(&to_opener, secret.bytes.data(), sizeof to_opener);
    std::memcpy(&to_node, secret.bytes.data() + sizeof to_opener, sizeof to_node);
    return node ? fabric::StreamKeys{.incoming = to_node, .outgoing = to_opener}
                : fabric::StreamKeys{.incoming = to_opener, .outgoing = to_node};
}

asio::awaitable<Result<std::shared_ptr<PeerState>>> Control::reach(std::string address, Endpoints endpoints,
                                                                   std::shared_ptr<PeerState> old) {
    std::shared_ptr<PeerState> known = old;
    std::string spelling;
    NodeId member = members_.of(old);
    for (const auto& endpoint : endpoints) {
        const std::string each = canonical(endpoint);
        if (spelling.empty()) spelling = each;
        if (old) continue;
        if (member == kNoNode) member = members_.at(each);
        if (const auto found = by_address_.find(each); !known && found != by_address_.end())
            known = found->second.lock();
    }
    if (member == host_.routes.id() && !address_.empty()) member = kNoNode;
    if (member != kNoNode && !old) {
        ROVE_CO_TRY(const bool is_there, co_await answers_there(member));
        if (!is_there) member = kNoNode;
    }
    if (member != kNoNode && !known) known = members_.find(member)->peer.lock();
    if (known && host_.peers.linked(*known)) co_return known;
    Wanted wanted{.address = std::move(address), .endpoints = std::move(endpoints), .old = known};
    std::string key = "client:" + spelling;
    if (member != kNoNode) {
        wanted.role = Role::member;
        wanted.member = member;
        key = fmt::format("member:{}", member);
    } else if (const auto found = by_address_.find(spelling);
               old && (found == by_address_.end() || found->second.lock() != old)) {
        key = fmt::format("old:{}", static_cast<const void*>(old.get()));  // not what others would get there
    }
    const Result<Met> met = co_await share(std::move(key), std::move(wanted));
    if (!met) co_return tl::unexpected<Error>(met.error());
    co_return met->peer;
}

// A member says itself at which address it listens. That need not be true, so this node connects there once to see who answers.
asio::awaitable<Result<bool>> Control::answers_there(NodeId id) {
    const MemberEntry asked = *members_.find(id);
    if (asked.answers_there) co_return true;
    const Result<Met> met = co_await meet_member(id, asked.state == MemberEntry::State::living);
    MemberEntry& entry = *members_.find(id);
    if (!met && met.error().code() == ErrorCode::timed_out) co_return tl::unexpected<Error>(met.error());
    if (!met || !entry.is_known_as(asked.key, asked.address)) co_return false;
    entry.answers_there = true;
    co_return true;
}

// However the attempt ends, those that wait for it are told. Telling them needs no memory.
class Control::AttemptUnderWay {
public:
    AttemptUnderWay(Control& control, std::string key, const std::shared_ptr<Attempt>& attempt)
        : control_(control), place_(control.attempts_.emplace(std::move(key), attempt).first) {}
    ~AttemptUnderWay() {
        if (control_.drops_all_) return;  // all who wait for it are dropped, too
        Attempt& attempt = *place_->second;
        if (!attempt.result) attempt.result.emplace(tl::unexpected<Error>(no_memory()));
        attempt.ended.cancel();
        control_.attempts_.erase(place_);
    }
    AttemptUnderWay(const AttemptUnderWay&) = delete;

private:
    Control& control_;
    std::map<std::string, std::shared_ptr<Attempt>>::iterator place_;
};

// If a meeting with the same key is under way, waits for its result; otherwise begins one.
asio::awaitable<Result<Control::Met>> Control::share(std::string key, Wanted wanted) {
    if (const auto under_way = attempts_.find(key); under_way != attempts_.end()) {
        const std::shared_ptr<Attempt> attempt = under_way->second;
        while (!attempt->result) (void)co_await attempt->ended.async_wait(kAwait);
        co_return *attempt->result;
    }
    const auto attempt = std::make_shared<Attempt>(thread_.io());
    const AttemptUnderWay under_way(*this, std::move(key), attempt);
    attempt->result.emplace(co_await meet(std::move(wanted)));
    co_return *attempt->result;
}

asio::awaitable<Result<Control::Met>> Control::meet(Wanted wanted) {
    const NodeId member = wanted.probe ? kNoNode : wanted.member;
    const auto linked_to = [this, member]() -> std::optional<Met> {
        const MemberEntry* entry = member != kNoNode ? members_.find(member) : nullptr;
        const std::shared_ptr<PeerState> peer = entry != nullptr ? entry->peer.lock() : nullptr;
        if (!peer || !host_.peers.linked(*peer)) return std::nullopt;
        return Met{.peer = peer, .id = member};
    };
    const TimePoint limit = Clock::now() + host_.options.connect_timeout;
    for (unsigned tries = 1;; ++tries) {
        // If the member has opened a meeting with this node, that one serves as well.
        const auto comes = [this, member] {
            const MemberEntry* entry = member != kNoNode ? members_.find(member) : nullptr;
            return entry != nullptr && entry->incoming > 0;
        };
        while (comes() && Clock::now() < limit) co_await thread_.pause(std::chrono::milliseconds(1));
        if (auto met = linked_to()) co_return std::move(*met);
        bool heard = false;
        std::shared_ptr<Channel> channel;
        Result<Met> met = co_await meet_once(wanted, limit, channel, heard);
        if (met || Clock::now() >= limit) co_return met;
        const bool linked =
            channel && channel->farewell() && channel->farewell()->goodbye.reason == Goodbye::Reason::linked;
        if (linked && wanted.probe) co_return Met{};
        if (linked && member != kNoNode) {
            // The other side says that there is a link: it is about to be adopted here, or it is dead and only this side knows.
            for (unsigned looks = 0; looks < 100 && Clock::now() < limit; ++looks) {
                if (auto now = linked_to()) co_return std::move(*now);
                co_await thread_.pause(std::chrono::milliseconds(1 + looks / 10));
            }
            wanted.replace = true;
            continue;
        }
        if (heard || !channel) co_return met;
        if (tries >= kTriesMax)
            co_return prefixed(
                met.error(),
                fmt::format("{} meetings were dropped before they were answered: that node has more under way "
                            "than it has places for, or is no node",
                            tries));
        co_await thread_.pause(pause_after(tries));
    }
}

asio::awaitable<Result<Control::Met>> Control::meet_once(Wanted& wanted, TimePoint until,
                                                         std::shared_ptr<Channel>& channel, bool& heard) {
    const auto late = [this, &wanted] {
        return fail(ErrorCode::timed_out, "the node at {} did not answer within {} ms", wanted.address,
                    host_.options.connect_timeout.count());
    };
    Socket socket(thread_.io());
    asio::error_code failed = asio::error::host_not_found;
    auto left =
        static_cast<int>(wanted.endpoints.size());  // share the time, so that a silent one leaves some to the next
    for (const auto& endpoint : wanted.endpoints) {
        const TimePoint now = Clock::now();
        failed = co_await control::connect(thread_, socket, endpoint, now + (until - now) / left--);
        if (!failed) break;
    }
    if (failed == asio::error::timed_out && Clock::now() >= until) co_return late();
    if (failed) {
        const bool nobody =
            failed == asio::error::connection_refused || failed == asio::error_code(ENOENT, asio::system_category());
        if (const MemberEntry* entry = members_.find(wanted.member); nobody && entry != nullptr)
            member_is_gone(wanted.member, entry->key, "nobody listens at its address");
        if (failed == asio::error::no_descriptors)
            co_return fail(ErrorCode::overloaded,
                           "the node at {} cannot be met: this process has no descriptors left (ulimit -n)",
                           wanted.address);
        co_return fail(ErrorCode::disconnected, "no node answers at {} ({}); is `rove node --listen {}` running?",
                       wanted.address, failed.message(), wanted.address);
    }
    channel = std::make_shared<Channel>(std::move(socket), channels_);
    Deadline deadline(thread_.io(), channel);
    deadline.set(until);
    // Two members may open a meeting to each other at the same time: see id_of_member().
    struct Opening {
        std::multiset<NodeId>& opening;
        std::multiset<NodeId>::iterator place;
        ~Opening() { opening.erase(place); }
    };
    const Opening opening{opening_, opening_.insert(wanted.probe ? kNoNode : wanted.member)};
    Result<Met> met = co_await converse(channel, wanted, until, heard);
    if (met && met->peer) co_return met;
    channel->close(Goodbye{.reason = Goodbye::Reason::refused,
                           .code = met ? ErrorCode::ok : met.error().code(),
                           .text = met ? std::string() : met.error().message()});
    if (met) co_return met;
    if (deadline.passed()) co_return late();
    co_return prefixed(met.error(), fmt::format("meeting the node at {}", wanted.address));
}

// Is it whom this node wanted to meet, and may this node be what it says?
Status Control::check_welcome(const Wanted& wanted, const Welcome& welcome, Bytes statement) {
    if (wanted.role == Role::client) {
        if (!is_client(welcome.you) || home_of(welcome.you) != welcome.id)
            return fail(ErrorCode::invalid, "it gave an id that is not a client's of its own");
        return {};
    }
    if (is_client(welcome.you) || welcome.you == welcome.id)
        return fail(ErrorCode::invalid, "it gave an id that is not a member's");
    if (!signed_by(welcome.key, statement, welcome.signature))
        return fail(ErrorCode::refused, "it does not have the key that it says it has, or showed it to another");
    if (wanted.role == Role::join) return {};
    const MemberEntry* entry = members_.find(wanted.member);
    if (entry == nullptr || welcome.cluster != cluster_ || welcome.id != wanted.member || welcome.key != entry->key) {
        const Error why(ErrorCode::disconnected, fmt::format("node {} is not there any more: another process is at {}",
                                                             wanted.member, wanted.address));
        if (entry != nullptr) member_is_gone(wanted.member, entry->key, "another process is at its address");
        return tl::unexpected<Error>(why);
    }
    if (welcome.you != host_.routes.id()) return fail(ErrorCode::invalid, "it takes this node for another one");
    return {};
}

asio::awaitable<Result<Control::Met>> Control::converse(std::shared_ptr<Channel> channel, const Wanted& wanted,
                                                        TimePoint until, bool& heard) {
    ROVE_CO_TRY(const bool same_user, channel->same_user());
    const Nonce mine = random_nonce();
    ROVE_CO_CHECK(co_await channel->send(encode(Hello{.role = wanted.role, .nonce = mine})));
    const Result<Challenge> challenge = co_await channel->receive<Challenge>();
    heard = challenge || challenge.error().code() != ErrorCode::disconnected || channel->farewell();
    if (!challenge) {
        const MemberEntry* entry = members_.find(wanted.member);
        if (entry != nullptr && channel->farewell() &&
            channel->farewell()->goodbye.reason == Goodbye::Reason::not_joined)
            member_is_gone(wanted.member, entry->key, "another process is at its address");
        co_return tl::unexpected<Error>(challenge.error());
    }
    const Nonce theirs = challenge->nonce;
    ProofGiven proof;
    if (!same_user) {
        ROVE_CO_TRY(const Cookie secret, cookie());
        if (!same(challenge->proof, prove(secret, "node", theirs, mine, channel->remote_endpoint())))
            co_return fail(
                ErrorCode::refused,
                "it does not know this user's cookie ({}): it belongs to another user, or uses another --cookie",
                cookie_path(host_.options.cookie).string());
        proof.proof = prove(secret, "peer", theirs, mine, channel->remote_endpoint());
    }
    PendingLink link(host_.fabric);
    Result<std::unique_ptr<fabric::Link>> opened = host_.fabric.open_link();
    if (opened)
        link.set(std::move(*opened));
    else if (opened.error().code() != ErrorCode::unsupported || !host_.fabric.has_streams())
        co_return tl::unexpected<Error>(opened.error());
    wire::control::Request request{.has_residents = !Residents::none(),
                                   .replace = wanted.replace,
                                   .features = wire::control::kFeatures,
                                   .triple = std::string(code::host_triple()),
                                   .address = address_,
                                   .key = {},
                                   .signature = {},
                                   .certificate = {},
                                   .offer = link ? link->offer() : ByteBuffer()};
    if (wanted.role != Role::client) {
        request.key = keys_.key();
        request.signature = keys_.sign(wire::control::statement("peer", theirs, mine, channel->bound_there()));
        if (wanted.role == Role::member) request.certificate = certificate_;
    }
    ByteBuffer both = encode(proof);
    const ByteBuffer asked = encode(request);
    both.insert(both.end(), asked.begin(), asked.end());
    heard = false;  // until it answers: the node may drop the connection here, too
    ROVE_CO_CHECK(co_await channel->send(std::move(both)));

    const Result<ByteBuffer> received = co_await channel->receive(Welcome::kBytesMax);
    heard = received || received.error().code() != ErrorCode::disconnected;
    if (!received) co_return tl::unexpected<Error>(received.error());
    const ByteBuffer& answer = *received;
    ROVE_CO_CHECK(channel->heed_goodbye(answer));
    if (wanted.role == Role::join && wire::control::kind_of(answer) == wire::control::Kind::redirect) {
        ROVE_CO_TRY(Redirect redirect, wire::control::decode<Redirect>(answer));
        co_return Met{.peer = nullptr, .redirect = std::move(redirect.address)};
    }
    ROVE_CO_TRY(const Welcome welcome, wire::control::decode<Welcome>(answer));
    ROVE_CO_CHECK(
        check_welcome(wanted, welcome, wire::control::statement("node", theirs, mine, channel->bound_there())));

    // The lane: direct, else a stream.
    std::optional<Error> no_lane;
    bool direct = false;
    if (link && !welcome.offer.empty()) {
        const Status reached = host_.fabric.connect(*link, welcome.offer);
        direct = reached.has_value();
        if (!reached) no_lane = reached.error();
        if (!reached && reached.error().code() != ErrorCode::unsupported)
            co_return tl::unexpected<Error>(reached.error());
    }
    if (!direct) {
        link.drop();
        if (!welcome.has_ticket || !host_.fabric.has_streams())
            co_return fail(ErrorCode::unsupported,
                           "there is no lane to it{}{}; are both ends started with the same --fabric?",
                           no_lane ? ": " : "", no_lane ? no_lane->message() : "");
        ROVE_CO_TRY(const auto endpoint, channel->remote());
        Result<std::unique_ptr<fabric::Link>> stream = co_await open_stream(endpoint, welcome, until);
        if (!stream) co_return tl::unexpected<Error>(stream.error());
        link.set(std::move(*stream));
    }
    if (wanted.role == Role::join) {  // from here on others may come and ask for it
        cluster_ = welcome.cluster;
        host_.routes.set_identity(welcome.you, welcome.count);
    }
    ROVE_CO_CHECK(co_await channel->send(encode(Connected{.lane = direct ? Lane::direct : Lane::stream})));
    ROVE_CO_TRY(Settled settled, co_await channel->receive<Settled>());

    if (wanted.role == Role::join) {
        certificate_ = settled.certificate;
        i_am(welcome.you, certificate_.generation);
        members_.set({welcome.id, 1, wanted.address, welcome.key}, MemberEntry::State::lost);
    }
    if (!welcome.has_residents && !Residents::none())
        code::expect_to_send();  // what this program calls there has to travel
    // If this side has made a link meanwhile, this one is not needed.
    const std::string spelling = [&] {
        const auto endpoint = channel->remote();
        return endpoint ? canonical(*endpoint) : wanted.address;
    }();
    std::shared_ptr<PeerState> old = wanted.old;
    if (const MemberEntry* entry = members_.find(wanted.member); !old && entry != nullptr) old = entry->peer.lock();
    if (const auto found = by_address_.find(spelling);
        !old && wanted.role == Role::client && found != by_address_.end())
        old = found->second.lock();
    if (const MemberEntry* entry = members_.find(wanted.member);
        wanted.role == Role::member && (entry == nullptr || entry->key != welcome.key))
        co_return fail(ErrorCode::disconnected, "node {} became another process while this one was met", wanted.member);
    Meeting meeting{.id = welcome.id,
                    .my_id = welcome.you,
                    .member = wanted.role != Role::client,
                    .process = welcome.key,
                    .address = old ? std::string() : wanted.address,
                    .triple = welcome.triple,
                    .node_count = welcome.count,
                    .resident = welcome.resident,
                    .has_residents = welcome.has_residents,
                    .replace = wanted.replace,
                    .features = welcome.features & wire::control::kFeatures,
                    .hang_up = hang_up_of(thread_.gate(), channel)};
    Result<Peers::Adopted> adopted = host_.peers.adopt(std::move(meeting), link.take(), old);
    if (!adopted) co_return tl::unexpected<Error>(adopted.error());
    const bool member = wanted.role != Role::client;
    Met met{.peer = adopted->peer, .id = welcome.id, .redirect = {}, .members = std::move(settled.members)};
    if (!adopted->taken) {
        channel->close(Goodbye{.reason = Goodbye::Reason::cut, .text = "another link was made meanwhile"});
        co_return met;
    }
    Unwatched unwatched(*this,
                        {.peer = adopted->peer, .meeting = adopted->meeting, .member = member ? welcome.id : kNoNode});
    if (member) {
        member_is_here(welcome.id, *adopted, channel);
        members_.find(welcome.id)->answers_there = true;
    } else {
        std::erase_if(by_address_, [](const auto& each) { return each.second.expired(); });
        by_address_[spelling] = adopted->peer;
    }
    thread_.spawn(watch(channel, std::move(unwatched)), "watching a node");
    co_return met;
}

asio::awaitable<Result<std::unique_ptr<fabric::Link>>> Control::open_stream(
    asio::generic::stream_protocol::endpoint endpoint, Welcome welcome, TimePoint until) {
    Socket socket(thread_.io());
    const asio::error_code failed = co_await control::connect(thread_, socket, endpoint, until);
    if (failed)
        co_return fail(ErrorCode::disconnected, "its second connection, for the lane, failed ({})", failed.message());
    const auto lane = std::make_shared<Channel>(std::move(socket), channels_);
    Deadline deadline(thread_.io(), lane);
    deadline.set(until);
    ROVE_CO_CHECK(lane->same_user());
    ROVE_CO_CHECK(co_await lane->send(encode(LaneHello{.ticket = welcome.ticket})));
    const int descriptor = lane->release();
    if (descriptor < 0) co_return fail(ErrorCode::disconnected, "its second connection, for the lane, ended");
    co_return host_.fabric.open_stream(descriptor, stream_keys(welcome.secret, false));
}

}  // namespace rove::control
