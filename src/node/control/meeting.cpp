// Meeting: both sides of the conversation that control.hpp shows.

#include <asio/co_spawn.hpp>
#include <asio/connect.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include "code/own_code.hpp"
#include "node/control/control.hpp"
#include "node/log.hpp"
#include "node/residents.hpp"

// Returns the error of a Result from a coroutine, or binds its value.
#define ROVE_CO_TRY(declaration, expression)                                                  \
    auto ROVE_CONCAT(rove_try_, __LINE__) = (expression);                                     \
    if (!ROVE_CONCAT(rove_try_, __LINE__))                                                    \
        co_return tl::unexpected<Error>(std::move(ROVE_CONCAT(rove_try_, __LINE__).error())); \
    declaration = std::move(*ROVE_CONCAT(rove_try_, __LINE__))
#define ROVE_CO_CHECK(expression) \
    if (auto rove_status = (expression); !rove_status) co_return tl::unexpected<Error>(rove_status.error())

namespace rove::control {
namespace {

constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);
constexpr std::array<std::string_view, 3> kRoles{"client", "join", "member"};

// The other side's refusal, or the message.
Result<Message> accepted(Result<Message> message) {
    if (!message) return message;
    const auto error = message->find("error");
    if (error == message->end()) return message;
    ROVE_TRY(const std::uint64_t code, number_field(*error, "code", static_cast<std::uint64_t>(ErrorCode::internal)));
    ROVE_TRY(const std::string text, text_field(*error, "text"));
    return tl::unexpected<Error>(Error(code == 0 ? ErrorCode::internal : static_cast<ErrorCode>(code), text));
}

bool says(const Message& message, const char* name) {
    const auto field = message.find(name);
    return field != message.end() && field->is_boolean() && field->get<bool>();
}

Status same_version(const Message& message) {
    ROVE_TRY(const std::uint64_t version, number_field(message, "rove", 1'000'000));
    if (version == kProtocolVersion) return {};
    return fail(ErrorCode::unsupported,
                "it speaks version {} of Rove's protocol, this is version {}; use one Rove on both sides", version,
                kProtocolVersion);
}

// A link that is destroyed under the node's lock if the meeting fails on the way.
class PendingLink {
public:
    PendingLink(NodeCore& core, std::unique_ptr<fabric::Link> link) : core_(core), link_(std::move(link)) {}
    ~PendingLink() {
        if (link_) core_.drop_link(std::move(link_));
    }
    PendingLink(const PendingLink&) = delete;
    fabric::Link& operator*() { return *link_; }
    fabric::Link* operator->() { return link_.get(); }
    std::unique_ptr<fabric::Link> take() { return std::move(link_); }

private:
    NodeCore& core_;
    std::unique_ptr<fabric::Link> link_;
};

Result<std::vector<Digest>> digests_of(const Message& message) {
    std::vector<Digest> digests;
    const auto list = message.find("resident");
    if (list == message.end() || !list->is_array())
        return fail(ErrorCode::invalid, "control message without list 'resident'");
    for (const Message& each : *list) {
        ROVE_TRY(const Digest digest, id_field<Digest>(each, "digest"));
        digests.push_back(digest);
    }
    return digests;
}

Result<std::vector<std::pair<NodeId, std::string>>> members_of(const Message& message) {
    std::vector<std::pair<NodeId, std::string>> members;
    const auto list = message.find("members");
    if (list == message.end() || !list->is_array())
        return fail(ErrorCode::invalid, "control message without list 'members'");
    for (const Message& each : *list) {
        ROVE_TRY(const std::uint64_t id, number_field(each, "id", kNodeIdMax));
        ROVE_TRY(const std::string address, text_field(each, "address"));
        members.emplace_back(static_cast<NodeId>(id), address);
    }
    return members;
}

}  // namespace

asio::awaitable<Result<Control::Met>> Control::meet(Request request) {
    ROVE_CO_TRY(const Address address, parse_address(request.address));
    ROVE_CO_TRY(const auto endpoints, resolve(address));
    Socket socket(io_);
    asio::error_code failed;
    for (const auto& endpoint : endpoints) {
        asio::error_code ignored;
        socket.close(ignored);
        auto [error] = co_await socket.async_connect(endpoint, kAwait);
        failed = error;
        if (!failed) break;
    }
    if (failed)
        co_return fail(ErrorCode::disconnected, "no node answers at {} ({}); is `rove node --listen {}` running?",
                       request.address, failed.message(), request.address);
    auto channel = std::make_shared<Channel>(std::move(socket));
    channels_.push_back(channel);
    bool late = false;
    asio::steady_timer deadline(io_, core_.options().connect_timeout);
    deadline.async_wait([channel, &late](asio::error_code error) {
        if (error) return;
        late = true;
        channel->close();
    });
    Result<Met> met = co_await meet_over(channel, request, address);
    deadline.cancel();
    if (met && met->peer) {
        asio::co_spawn(io_, watch(channel, met->peer), asio::detached);
        co_return met;
    }
    channel->close();
    if (met) co_return met;
    if (late)
        co_return fail(ErrorCode::timed_out, "the node at {} did not answer within {} ms", request.address,
                       core_.options().connect_timeout.count());
    co_return prefixed(met.error(), fmt::format("meeting the node at {}", request.address));
}

asio::awaitable<Result<Control::Met>> Control::meet_over(std::shared_ptr<Channel> channel, Request request,
                                                         const Address& address) {
    ROVE_CO_TRY(const bool same_user, channel->same_user());
    const Nonce mine = random_nonce();
    ROVE_CO_CHECK(co_await channel->send({{"rove", kProtocolVersion},
                                          {"nonce", binary(mine.raw())},
                                          {"role", kRoles[static_cast<std::size_t>(request.role)]}}));
    ROVE_CO_TRY(const Message challenge, accepted(co_await channel->receive()));
    ROVE_CO_CHECK(same_version(challenge));
    ROVE_CO_TRY(const Nonce theirs, id_field<Nonce>(challenge, "nonce"));
    Proof proof;
    if (!same_user) {
        ROVE_CO_TRY(const Cookie secret, cookie());
        ROVE_CO_TRY(const Proof given, id_field<Proof>(challenge, "proof"));
        if (!same(given, prove(secret, "node", theirs, mine, channel->remote_endpoint())))
            co_return fail(
                ErrorCode::refused,
                "it does not know this user's cookie ({}): it belongs to another user, or uses another --cookie",
                cookie_path(core_.options().cookie).string());
        proof = prove(secret, "peer", theirs, mine, channel->remote_endpoint());
    }
    Result<std::unique_ptr<fabric::Link>> opened = core_.open_link();
    if (!opened) co_return tl::unexpected<Error>(opened.error());
    PendingLink link(core_, std::move(*opened));
    ROVE_CO_CHECK(co_await channel->send({{"proof", binary(proof.raw())},
                                          {"triple", code::host_triple()},
                                          {"offer", binary(link->offer())},
                                          {"id", core_.id()},
                                          {"residents", !Residents::none()},
                                          {"listen", address_}}));
    ROVE_CO_TRY(const Message welcome, accepted(co_await channel->receive()));
    if (welcome.contains("redirect")) {
        Met redirected;
        ROVE_CO_TRY(redirected.redirect, text_field(welcome, "redirect"));
        co_return redirected;
    }
    Met met;
    NodeCore::Meeting meeting;
    ROVE_CO_TRY(const std::uint64_t id, number_field(welcome, "id", kNodeIdMax));
    ROVE_CO_TRY(const std::uint64_t you, number_field(welcome, "you", kNoNode - 1));
    ROVE_CO_TRY(const std::uint64_t count, number_field(welcome, "count", kNodeIdMax + 1));
    ROVE_CO_TRY(meeting.triple, text_field(welcome, "triple"));
    ROVE_CO_TRY(meeting.resident, digests_of(welcome));
    ROVE_CO_TRY(met.members, members_of(welcome));
    ROVE_CO_TRY(const ByteBuffer offer, bytes_field(welcome, "offer", fabric::kOfferBytesMax));
    if (is_client(static_cast<NodeId>(you)) != (request.role == Role::client))
        co_return fail(ErrorCode::invalid, "it gave an id of the wrong kind");
    meeting.id = static_cast<NodeId>(id);
    meeting.my_id = static_cast<NodeId>(you);
    meeting.node_count = static_cast<std::uint32_t>(count);
    meeting.has_residents = says(welcome, "residents");
    meeting.member = request.role != Role::client;
    meeting.address = request.old ? request.old->address : request.address;
    meeting.hang_up = [this, weak = std::weak_ptr(channel)] {
        asio::post(io_, [weak] {
            if (const auto open = weak.lock()) open->close();
        });
    };
    ROVE_CO_CHECK(core_.connect_link(*link, offer));
    ROVE_CO_CHECK(co_await channel->send({{"connected", true}}));
    ROVE_CO_TRY(const Message connected, accepted(co_await channel->receive()));
    if (!meeting.has_residents && !Residents::none())
        code::expect_to_send();  // what this program calls there has to travel
    if (request.role == Role::join) core_.set_identity(meeting.my_id, meeting.node_count);
    Result<std::shared_ptr<PeerState>> peer = core_.adopt(std::move(meeting), link.take(), request.old);
    if (!peer) co_return tl::unexpected<Error>(peer.error());
    met.peer = *peer;
    (void)address;
    co_return met;
}

// The node's side, up to the proof that it is the same user who comes.
asio::awaitable<Status> Control::welcome(std::shared_ptr<Channel> channel) {
    ROVE_CO_TRY(const bool same_user, channel->same_user());
    ROVE_CO_TRY(const Message hello, co_await channel->receive());
    ROVE_CO_CHECK(same_version(hello));
    ROVE_CO_TRY(const Nonce theirs, id_field<Nonce>(hello, "nonce"));
    ROVE_CO_TRY(const std::string role_name, text_field(hello, "role"));
    const auto role = std::find(kRoles.begin(), kRoles.end(), role_name);
    if (role == kRoles.end())
        co_return fail(ErrorCode::invalid, "it wants to be a '{}'; there are client, join and member", role_name);
    while (!identity_known_) {  // this node is joining others itself
        asio::steady_timer timer(io_, std::chrono::milliseconds(2));
        (void)co_await timer.async_wait(kAwait);
    }
    const Nonce mine = random_nonce();
    Message challenge{{"rove", kProtocolVersion}, {"nonce", binary(mine.raw())}};
    Proof expected;
    if (!same_user) {
        ROVE_CO_TRY(const Cookie secret, cookie());
        challenge["proof"] = binary(prove(secret, "node", mine, theirs, channel->local_endpoint()).raw());
        expected = prove(secret, "peer", mine, theirs, channel->local_endpoint());
    }
    ROVE_CO_CHECK(co_await channel->send(std::move(challenge)));
    ROVE_CO_TRY(const Message request, co_await channel->receive());
    if (!same_user) {
        ROVE_CO_TRY(const Proof given, id_field<Proof>(request, "proof"));
        if (!same(given, expected))
            co_return fail(ErrorCode::refused,
                           "a process at {} does not know this node's cookie: it belongs to another user, or uses "
                           "another --cookie",
                           channel->remote_endpoint());
    }
    co_return co_await let_in(channel, static_cast<Role>(role - kRoles.begin()), request);
}

Result<NodeId> Control::give_id(Role role, const Message& request) {
    if (role == Role::client) {
        const auto unused = std::find(clients_.begin(), clients_.end(), false);
        const auto index = static_cast<std::size_t>(unused - clients_.begin());
        if (index > 0xFFFFU) return fail(ErrorCode::overloaded, "this node has 65536 clients, the most there may be");
        if (unused == clients_.end()) clients_.push_back(true);
        clients_[index] = true;
        return client_id(core_.id(), static_cast<std::uint16_t>(index));
    }
    ROVE_TRY(const std::string address, text_field(request, "listen"));
    ROVE_CHECK(parse_address(address));
    if (role == Role::member) {
        ROVE_TRY(const std::uint64_t id, number_field(request, "id", kNodeIdMax));
        note_member(static_cast<NodeId>(id), address, Member::State::living);
        return static_cast<NodeId>(id);
    }
    NodeId id = 0;
    while (id < members_.size() && members_[id].state != Member::State::unused &&
           !(members_[id].address == address && id != core_.id()))
        ++id;
    if (id > kNodeIdMax)
        return fail(ErrorCode::overloaded, "{} nodes have joined, the most there may be", kNodeIdMax + 1);
    note_member(id, address, Member::State::joining);
    return id;
}

asio::awaitable<Status> Control::let_in(std::shared_ptr<Channel> channel, Role role, const Message& request) {
    if (role == Role::join && coordinator() != core_.id()) {
        ROVE_CO_CHECK(co_await channel->send({{"redirect", members_[coordinator()].address}}));
        channel->close();
        co_return Status();
    }
    NodeCore::Meeting meeting;
    ROVE_CO_TRY(meeting.triple, text_field(request, "triple"));
    ROVE_CO_TRY(const ByteBuffer offer, bytes_field(request, "offer", fabric::kOfferBytesMax));
    Result<std::unique_ptr<fabric::Link>> opened = core_.open_link();
    if (!opened) co_return tl::unexpected<Error>(opened.error());
    PendingLink link(core_, std::move(*opened));
    ROVE_CO_CHECK(core_.connect_link(*link, offer));
    ROVE_CO_TRY(const NodeId you, give_id(role, request));
    if (role != Role::client) meeting.address = members_[you].address;
    Message resident = Message::array();
    for (const Digest& digest : core_.resident_digests()) resident.push_back({{"digest", binary(digest.raw())}});
    Message reply{{"id", core_.id()},
                  {"you", you},
                  {"count", core_.node_count()},
                  {"members", member_list()},
                  {"resident", resident},
                  {"residents", !Residents::none()},
                  {"triple", code::host_triple()},
                  {"offer", binary(link->offer())}};
    Status said = co_await channel->send(std::move(reply));
    Result<Message> connected =
        said ? accepted(co_await channel->receive()) : Result<Message>(tl::unexpect, said.error());
    if (!connected) {  // the id is free again
        if (role == Role::client) clients_[you & 0xFFFFU] = false;
        if (role == Role::join) members_[you].state = Member::State::unused;
        co_return prefixed(connected.error(), "it could not open its lane");
    }
    if (role == Role::join) members_[you].state = Member::State::living;
    meeting.has_residents = says(request, "residents");
    meeting.id = you;
    meeting.my_id = core_.id();
    meeting.member = role != Role::client;
    meeting.node_count = core_.node_count();
    meeting.hang_up = [this, weak = std::weak_ptr(channel)] {
        asio::post(io_, [weak] {
            if (const auto open = weak.lock()) open->close();
        });
    };
    Result<std::shared_ptr<PeerState>> peer = core_.adopt(std::move(meeting), link.take(), nullptr);
    if (!peer) co_return tl::unexpected<Error>(peer.error());
    asio::co_spawn(io_, watch(channel, *peer), asio::detached);
    co_return co_await channel->send({{"connected", true}});
}

}  // namespace rove::control
