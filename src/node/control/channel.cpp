#include "node/control/channel.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <asio/experimental/as_tuple.hpp>
#include <asio/read.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include "base/bytes.hpp"
#include "node/control/address.hpp"

namespace rove::control {
namespace {

constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);

tl::unexpected<Error> gone(const asio::error_code& error) {
    return fail(ErrorCode::disconnected, "the control connection ended ({})", error.message());
}

}  // namespace

asio::awaitable<Result<Message>> Channel::receive() {
    std::uint32_t size = 0;
    if (auto [error, count] = co_await asio::async_read(socket_, asio::buffer(&size, sizeof size), kAwait); error)
        co_return gone(error);
    if (size > kMessageBytesMax)
        co_return fail(ErrorCode::invalid, "control message of {} bytes, over the limit of {}", size, kMessageBytesMax);
    std::vector<std::uint8_t> raw(size);
    if (auto [error, count] = co_await asio::async_read(socket_, asio::buffer(raw), kAwait); error)
        co_return gone(error);
    Message message = Message::from_cbor(raw, true, false);  // no exceptions: a bad one is "discarded"
    if (message.is_discarded() || !message.is_object())
        co_return fail(ErrorCode::invalid, "control message of {} bytes is not a CBOR map", size);
    co_return message;
}

asio::awaitable<Status> Channel::send(Message message) {
    const std::vector<std::uint8_t> body = Message::to_cbor(message);
    const auto size = static_cast<std::uint32_t>(body.size());
    const std::array<asio::const_buffer, 2> parts{asio::buffer(&size, sizeof size), asio::buffer(body)};
    auto [error, count] = co_await asio::async_write(socket_, parts, kAwait);
    if (error) co_return gone(error);
    co_return Status();
}

void Channel::close() {
    asio::error_code ignored;
    socket_.shutdown(Socket::shutdown_both, ignored);
    socket_.close(ignored);
}

Result<bool> Channel::same_user() const {
    if (endpoint_text(socket_.local_endpoint()) != "unix") return false;
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
    asio::error_code ignored;
    return endpoint_text(socket_.local_endpoint(ignored));
}
std::string Channel::remote_endpoint() const {
    asio::error_code ignored;
    return endpoint_text(socket_.remote_endpoint(ignored));
}

Result<std::string> text_field(const Message& message, const char* name) {
    const auto found = message.find(name);
    if (found == message.end() || !found->is_string())
        return fail(ErrorCode::invalid, "control message without text '{}'", name);
    return found->get<std::string>();
}

Result<std::uint64_t> number_field(const Message& message, const char* name, std::uint64_t max) {
    const auto found = message.find(name);
    if (found == message.end() || !found->is_number_unsigned() || found->get<std::uint64_t>() > max)
        return fail(ErrorCode::invalid, "control message without number '{}' of at most {}", name, max);
    return found->get<std::uint64_t>();
}

Result<ByteBuffer> bytes_field(const Message& message, const char* name, std::size_t bytes_max) {
    const auto found = message.find(name);
    if (found == message.end() || !found->is_binary() || found->get_binary().size() > bytes_max)
        return fail(ErrorCode::invalid, "control message without bytes '{}' of at most {}", name, bytes_max);
    const auto bytes = std::as_bytes(std::span<const std::uint8_t>(found->get_binary()));
    return ByteBuffer(bytes.begin(), bytes.end());
}

Message::binary_t binary(Bytes bytes) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    return Message::binary_t(std::vector<std::uint8_t>(first, first + bytes.size()));
}

}  // namespace rove::control
