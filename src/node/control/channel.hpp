// A control connection: CBOR messages, each behind its length (4 bytes, little-endian), over a loopback TCP or Unix socket.
// Its end tells that the process at the other end is gone, within microseconds of its death.
//
// Threads: all of it on the control thread (the io_context's).
#pragma once

#include <asio/awaitable.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <nlohmann/json.hpp>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "node/control/cookie.hpp"

namespace rove::control {

using Socket = asio::generic::stream_protocol::socket;
using Message = nlohmann::json;

// The largest control message: a welcome that lists 32767 members at 32 bytes each would pass it, 4000 fit.
inline constexpr std::size_t kMessageBytesMax = 256 * 1024;

class Channel {
public:
    explicit Channel(Socket socket) : socket_(std::move(socket)) {}

    [[nodiscard]] asio::awaitable<Result<Message>> receive();  // disconnected; invalid: not CBOR, too large
    [[nodiscard]] asio::awaitable<Status> send(Message message);
    void close();

    // refused where the kernel says that the other end is another user. True: it said the same user, so no cookie is needed.
    [[nodiscard]] Result<bool> same_user() const;
    // What both ends know the connection by: the node's own "ip:port".
    [[nodiscard]] std::string local_endpoint() const;
    [[nodiscard]] std::string remote_endpoint() const;

private:
    Socket socket_;
};

// Reads a field of a message; invalid names the field. Ids are byte strings.
[[nodiscard]] Result<std::string> text_field(const Message& message, const char* name);
[[nodiscard]] Result<std::uint64_t> number_field(const Message& message, const char* name, std::uint64_t max);
[[nodiscard]] Result<ByteBuffer> bytes_field(const Message& message, const char* name, std::size_t bytes_max);
[[nodiscard]] Message::binary_t binary(Bytes bytes);

template <typename Id>
[[nodiscard]] Result<Id> id_field(const Message& message, const char* name) {
    ROVE_TRY(const ByteBuffer raw, bytes_field(message, name, sizeof(Id)));
    if (raw.size() != sizeof(Id))
        return fail(ErrorCode::invalid, "control message: '{}' is not {} bytes long", name, sizeof(Id));
    return Id::from(std::span<const std::byte, sizeof(Id)>(raw));
}

}  // namespace rove::control
