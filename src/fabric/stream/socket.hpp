// StreamSocket: the bytes of a stream lane between a StreamLink and the kernel. All bytes that a link sends or receives pass
// here, and nothing here knows what they mean.
//
// Threads: as Fabric (fabric.hpp).
//
// Invariants: bytes are taken in the order in which they are given. A caller of which only a part was taken gives the rest first the next
// time.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "base/descriptor.hpp"
#include "fabric/fabric.hpp"

namespace rove::fabric {

class StreamSocket {
public:
    // What a call has moved. Fewer bytes than it was given: the socket has no room for more, or no more has arrived.
    struct Moved {
        std::size_t bytes = 0;
        std::string_view end;  // why the stream has ended; empty: it has not. Valid until the thread's next error.
    };

    // Makes one of a connected socket, which it owns from then on, also if this fails. invalid: it is no stream socket.
    [[nodiscard]] static Result<StreamSocket> open(Descriptor socket, const StreamKeys& keys);
    StreamSocket(StreamSocket&&) noexcept = default;
    ~StreamSocket();

    // Neither waits, and neither keeps the parts. A part may be empty, but not if it is the only one.
    [[nodiscard]] Moved send(std::span<iovec> parts);
    [[nodiscard]] Moved receive(std::span<iovec> parts);

    // The descriptor to watch with epoll.
    [[nodiscard]] int descriptor() const { return socket_.number(); }
    [[nodiscard]] const StreamKeys& keys() const { return keys_; }

private:
    StreamSocket(Descriptor socket, const StreamKeys& keys) : socket_(std::move(socket)), keys_(keys) {}

    Descriptor socket_;
    StreamKeys keys_;
};

inline StreamSocket::Moved StreamSocket::send(std::span<iovec> parts) {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    ssize_t sent = 0;
    do sent = sendmsg(socket_.number(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) return {.bytes = static_cast<std::size_t>(sent), .end = {}};
    return {.bytes = 0, .end = errno == EAGAIN ? std::string_view() : strerror(errno)};
}

// A single part is received by recv(), which takes less time than recvmsg().
inline StreamSocket::Moved StreamSocket::receive(std::span<iovec> parts) {
    if (parts.front().iov_len == 0) parts = parts.subspan(1);
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    ssize_t got = 0;
    do
        got = parts.size() == 1 ? recv(socket_.number(), parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT)
                                : recvmsg(socket_.number(), &message, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got > 0) return {.bytes = static_cast<std::size_t>(got), .end = {}};
    if (got == 0) return {.bytes = 0, .end = "its other end was closed"};
    return {.bytes = 0, .end = errno == EAGAIN ? std::string_view() : strerror(errno)};
}

}  // namespace rove::fabric
