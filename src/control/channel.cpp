#include "control/channel.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <asio/co_spawn.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/read.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include "control/address.hpp"

namespace rove::control {
namespace {

constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);

tl::unexpected<Error> gone(const asio::error_code& error) {
    return fail(ErrorCode::disconnected, "the control connection ended ({})", error.message());
}

}  // namespace

Error Farewell::error() const {
    using Reason = wire::control::Goodbye::Reason;
    switch (goodbye.reason) {
        case Reason::left: return {ErrorCode::disconnected, "it left"};
        case Reason::cut: return {ErrorCode::disconnected, "it cut the link: " + goodbye.text};
        default: break;
    }
    return {goodbye.code == ErrorCode::ok ? ErrorCode::refused : goodbye.code, goodbye.text};
}

asio::awaitable<Result<ByteBuffer>> Channel::receive(std::size_t bytes_max) {
    std::uint32_t size = 0;
    if (auto [error, count] = co_await asio::async_read(socket_, asio::buffer(&size, sizeof size), kAwait); error)
        co_return gone(error);
    if (size == 0 || size > bytes_max)
        co_return fail(ErrorCode::invalid,
                       "its control message has {} bytes, where 1 to {} may come; is that a Rove node?", size,
                       bytes_max);
    ByteBuffer body(size);
    if (auto [error, count] = co_await asio::async_read(socket_, asio::buffer(body), kAwait); error)
        co_return gone(error);
    co_return body;
}

Status Channel::heed_goodbye(Bytes body) {
    if (wire::control::kind_of(body) != wire::control::Kind::goodbye) return {};
    ROVE_TRY(wire::control::Goodbye goodbye, wire::control::decode<wire::control::Goodbye>(body));
    farewell_ = Farewell{std::move(goodbye)};
    return tl::unexpected<Error>(farewell_->error());
}

asio::awaitable<Status> Channel::send(ByteBuffer message) {
    auto [error, count] = co_await asio::async_write(socket_, asio::buffer(message), kAwait);
    if (error) co_return gone(error);
    co_return Status();
}

// Writes what the kernel takes without waiting.
std::size_t Channel::write_now(Bytes bytes) {
    if (!socket_.is_open()) return 0;
    const ssize_t written = ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return written > 0 ? static_cast<std::size_t>(written) : 0;
}

void Channel::say(ByteBuffer message) {
    if (!socket_.is_open()) return;
    const std::size_t written = unsent_.empty() && !writing_ ? write_now(message) : 0;
    if (written == message.size()) return;
    if (being_written_ + unsent_.size() + message.size() > kUnsentBytesMax) return close();
    unsent_.insert(unsent_.end(), message.begin() + static_cast<std::ptrdiff_t>(written), message.end());
    if (std::exchange(writing_, true)) return;
    auto write = [](std::shared_ptr<Channel> self) -> asio::awaitable<void> { co_await self->write_unsent(); };
    const auto ended = [self = shared_from_this()](const std::exception_ptr& failed) {
        if (!failed) return;
        self->writing_ = false;
        self->close();  // memory ran out in the middle of a message
    };
    try {
        asio::co_spawn(socket_.get_executor(), write(shared_from_this()), ended);
    } catch (const std::bad_alloc&) {
        ended(std::current_exception());
    }
}

asio::awaitable<void> Channel::write_unsent() {
    while (!unsent_.empty()) {
        const ByteBuffer now = std::exchange(unsent_, {});
        being_written_ = now.size();
        auto [error, count] = co_await asio::async_write(socket_, asio::buffer(now), kAwait);
        if (error) break;  // the receiving conversation gets the error, too
    }
    being_written_ = 0;
    writing_ = false;
}

void Channel::close() {
    asio::error_code ignored;
    if (!socket_.is_open()) return;
    socket_.shutdown(Socket::shutdown_both, ignored);
    keep_in_forks(socket_.native_handle());
    socket_.close(ignored);
}

void Channel::close(const wire::control::Goodbye& goodbye) noexcept {
    // In the middle of another message the other end could not decode it.
    if (unsent_.empty() && !writing_) try {
            (void)write_now(encode(goodbye));
        } catch (const std::bad_alloc&) {  // the other end sees the connection end, without a reason
        }
    close();
}

int Channel::release() {
    asio::error_code error;
    const int descriptor = socket_.is_open() ? socket_.release(error) : -1;
    if (error) return -1;
    keep_in_forks(descriptor);
    return descriptor;
}

Result<bool> Channel::same_user() const {
    asio::error_code error;
    const auto local = socket_.local_endpoint(error);
    if (error) return gone(error);
    if (endpoint_text(local) != "unix") return false;
    ucred other{};
    socklen_t size = sizeof other;
    // native_handle() is not const although it changes nothing
    if (getsockopt(const_cast<Socket&>(socket_).native_handle(), SOL_SOCKET, SO_PEERCRED, &other, &size) != 0 ||
        other.uid != geteuid())
        return fail(ErrorCode::refused,
                    "the process at the other end belongs to another user ({}); only this user's may meet this node",
                    other.uid);
    return true;
}

std::string Channel::local_endpoint() const {
    asio::error_code error;
    const auto endpoint = socket_.local_endpoint(error);
    return error ? std::string("nowhere") : endpoint_text(endpoint);
}
std::string Channel::remote_endpoint() const {
    asio::error_code error;
    const auto endpoint = socket_.remote_endpoint(error);
    return error ? std::string("nowhere") : endpoint_text(endpoint);
}

std::string Channel::bound_here() const {
    asio::error_code error;
    const auto endpoint = socket_.local_endpoint(error);
    return error ? std::string("nowhere") : bound_text(endpoint);
}
std::string Channel::bound_there() const {
    asio::error_code error;
    const auto endpoint = socket_.remote_endpoint(error);
    return error ? std::string("nowhere") : bound_text(endpoint);
}

std::string Channel::origin() const {
    if (remote_endpoint() != "unix") return "loopback";
    ucred other{};
    socklen_t size = sizeof other;
    // native_handle() is not const although it changes nothing
    if (getsockopt(const_cast<Socket&>(socket_).native_handle(), SOL_SOCKET, SO_PEERCRED, &other, &size) != 0)
        return "unix";
    return fmt::format("pid {}", other.pid);
}

Result<asio::generic::stream_protocol::endpoint> Channel::remote() const {
    asio::error_code error;
    auto endpoint = socket_.remote_endpoint(error);
    if (error) return gone(error);
    return endpoint;
}

}  // namespace rove::control
