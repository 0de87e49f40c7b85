#include "node/control/control.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/connect.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include "node/log.hpp"

namespace rove::control {
namespace {

constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);

// A socket file that nobody answers on any more was left by a process that was killed.
void remove_dead_socket(const std::string& path) {
    struct stat facts{};
    if (lstat(path.c_str(), &facts) != 0 || !S_ISSOCK(facts.st_mode)) return;
    asio::io_context io;
    Socket probe(io);
    asio::error_code error;
    probe.connect(asio::local::stream_protocol::endpoint(path), error);
    if (error == asio::error::connection_refused) unlink(path.c_str());
}

}  // namespace

Control::Control(NodeCore& core) : core_(core) {
    thread_ = std::thread([this] { io_.run(); });
}

Control::~Control() {
    stop();
}

Result<std::string> Control::listen(const std::string& text) {
    if (text.empty()) return std::string();
    ROVE_TRY(Address address, parse_address(text));
    ROVE_TRY(const auto endpoints, resolve(address));
    const auto& endpoint = endpoints.front();
    if (address.is_unix()) remove_dead_socket(address.path);
    asio::error_code error;
    acceptor_.emplace(io_);
    acceptor_->open(endpoint.protocol(), error);
    if (!error && !address.is_unix()) acceptor_->set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_->bind(endpoint, error);
    if (!error) acceptor_->listen(asio::socket_base::max_listen_connections, error);
    if (error == asio::error::address_in_use)
        return fail(ErrorCode::invalid, "cannot listen on {}: another process does; choose another{}", text,
                    address.is_unix() ? " path" : " port, or port 0 for a free one");
    if (error) return fail(ErrorCode::invalid, "cannot listen on {}: {}", text, error.message());
    if (address.is_unix()) {
        chmod(address.path.c_str(), 0600);
        socket_path_ = address.path;
    } else {
        ROVE_CHECK(cookie());  // before anybody comes, and with an error that the one who starts the node sees
        address = *parse_address(endpoint_text(acceptor_->local_endpoint()));
    }
    address_ = address.to_string();
    asio::co_spawn(io_, accept_all(), asio::detached);
    return address_;
}

void Control::identity_known() {
    asio::post(io_, [this] {
        identity_known_ = true;
        if (!address_.empty()) note_member(core_.id(), address_, Member::State::living);
    });
}

Result<Cookie> Control::cookie() {
    if (cookie_) return *cookie_;
    ROVE_TRY(const Cookie read, read_or_make_cookie(cookie_path(core_.options().cookie)));
    cookie_ = read;
    return read;
}

asio::awaitable<void> Control::accept_all() {
    for (;;) {
        auto [error, socket] = co_await acceptor_->async_accept(io_, kAwait);
        if (error == asio::error::operation_aborted || !acceptor_->is_open()) co_return;
        if (error) {  // out of descriptors, say: others may be freed
            asio::steady_timer timer(io_, std::chrono::milliseconds(100));
            (void)co_await timer.async_wait(kAwait);
            continue;
        }
        if (meetings_ >= kMeetingsMax) continue;  // dropped: the other end sees the connection close
        auto channel = std::make_shared<Channel>(std::move(socket));
        asio::co_spawn(io_, receive_one(channel), asio::detached);
    }
}

// Follows a connection from its acceptance to the end of the meeting; what comes after is watch()'s.
asio::awaitable<void> Control::receive_one(std::shared_ptr<Channel> channel) {
    ++meetings_;
    channels_.push_back(channel);
    asio::steady_timer deadline(io_, core_.options().connect_timeout);
    deadline.async_wait([channel](asio::error_code error) {
        if (!error) channel->close();
    });
    const Status met = co_await welcome(channel);
    deadline.cancel();
    --meetings_;
    if (met) co_return;
    log().warn("{}: a meeting failed: {}", core_.name(), met.error().message());
    Message refusal;
    refusal["error"] = {{"code", static_cast<unsigned>(met.error().code())}, {"text", met.error().message()}};
    (void)co_await channel->send(std::move(refusal));
    channel->close();
}

// The connection's remaining task: to tell that the peer is gone, and how many nodes there are.
asio::awaitable<void> Control::watch(std::shared_ptr<Channel> channel, std::shared_ptr<PeerState> peer) {
    const NodeId id = peer->id;
    for (;;) {
        const Result<Message> message = co_await channel->receive();
        if (!message) {
            core_.lose(peer, message.error());
            break;
        }
        core_.lose(peer, Error(ErrorCode::invalid, "it sent a control message that nobody asked for"));
        break;
    }
    channel->close();
    if (is_client(id) && home_of(id) == core_.id()) clients_[id & 0xFFFFU] = false;
    if (!is_client(id) && id < members_.size() && members_[id].state == Member::State::living && peer->member)
        members_[id].state = Member::State::gone;
}

NodeId Control::coordinator() const {
    for (NodeId id = 0; id < members_.size(); ++id)
        if (members_[id].state == Member::State::living) return id;
    return core_.id();
}

void Control::note_member(NodeId id, const std::string& address, Member::State state) {
    if (members_.size() <= id) members_.resize(id + 1);
    members_[id] = {address, state};
    core_.set_node_count(static_cast<std::uint32_t>(members_.size()));
}

Message Control::member_list() const {
    Message list = Message::array();
    for (NodeId id = 0; id < members_.size(); ++id)
        if (members_[id].state == Member::State::living || members_[id].state == Member::State::joining)
            list.push_back({{"id", id}, {"address", members_[id].address}});
    return list;
}

Status Control::join(const std::string& address) {
    auto work = [](Control& self, std::string at) -> asio::awaitable<Status> {
        co_return co_await self.join_all(std::move(at));
    };
    std::future<Status> future = asio::co_spawn(io_, work(*this, address), asio::use_future);
    return future.get();
}

Result<std::shared_ptr<PeerState>> Control::connect(const std::string& address, std::shared_ptr<PeerState> old) {
    const Role role = old && old->member ? Role::member : Role::client;
    std::future<Result<Met>> future = asio::co_spawn(io_, meet({address, role, std::move(old)}), asio::use_future);
    ROVE_TRY(const Met met, future.get());
    return met.peer;
}

asio::awaitable<Status> Control::join_all(std::string address) {
    constexpr unsigned kRedirectsMax = 8;
    Met met;
    for (unsigned redirects = 0;; ++redirects) {
        Result<Met> asked = co_await meet({address, Role::join, nullptr});
        if (!asked) co_return tl::unexpected<Error>(asked.error());
        met = std::move(*asked);
        if (met.peer) break;
        if (redirects == kRedirectsMax)
            co_return fail(ErrorCode::internal, "cannot join: the nodes at {} send on from one to the other", address);
        address = met.redirect;
    }
    identity_known_ = true;
    for (const auto& [id, at] : met.members)
        if (id != core_.id()) note_member(id, at, Member::State::living);
    note_member(core_.id(), address_, Member::State::living);
    for (const auto& [id, at] : met.members) {
        if (id == core_.id() || id == met.peer->id) continue;
        const Result<Met> other = co_await meet({at, Role::member, nullptr});
        if (other) continue;
        members_[id].state = Member::State::gone;
        log().warn("{}: node {} at {} was not met: {}", core_.name(), id, at, other.error().message());
    }
    co_return Status();
}

void Control::stop_accepting() {
    asio::post(io_, [this] {
        if (acceptor_) acceptor_->close();
    });
    if (!socket_path_.empty()) unlink(std::exchange(socket_path_, {}).c_str());
}

void Control::stop() {
    if (!thread_.joinable()) return;
    stop_accepting();
    asio::post(io_, [this] {
        for (const auto& each : channels_)
            if (const auto channel = each.lock()) channel->close();
    });
    keep_.reset();
    // The coroutines end with their connections; one that waits for something else is dropped with the context.
    const auto limit = Clock::now() + std::chrono::milliseconds(500);
    while (!io_.stopped() && Clock::now() < limit) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    io_.stop();
    thread_.join();
}

}  // namespace rove::control
