// A control connection: messages (wire/control.hpp) over a loopback TCP or Unix socket. When the process at the other end dies, the kernel
// closes the connection within microseconds, which is how this node notices.
//
// Threads: all of it on the control thread (the io_context's).
//
// Invariants: messages are sent whole and in order: while `writing_` is set, one conversation (write_unsent) writes, and say() appends to
// `unsent_`. A forked child has no copy of an open socket. A channel that was closed or released stays so.
#pragma once

#include <fcntl.h>

#include <asio/awaitable.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <set>

#include "base/bytes.hpp"
#include "base/fork_descriptors.hpp"
#include "base/result.hpp"
#include "wire/control.hpp"

namespace rove::control {

using Socket = asio::generic::stream_protocol::socket;

// Bytes that say() was given and the other end has not taken yet. Only lists of members are sent without being requested: 1024 members,
// twice at most, are 2 x 235 KiB. The bound is twice that.
inline constexpr std::size_t kUnsentBytesMax = 940UL * 1024;

// The goodbye that the other end has sent; error() describes it for users.
struct Farewell {
    wire::control::Goodbye goodbye;
    [[nodiscard]] Error error() const;
};

class Channel : public std::enable_shared_from_this<Channel> {
public:
    // Is listed in `open` for its whole life, which the set outlives.
    Channel(Socket socket, std::set<Channel*>& open) : socket_(std::move(socket)), open_(open) {
        open_.insert(this);
        // A copy in a program that this one starts, or in a fork's child, would hide this process's end from the peer.
        (void)fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
        close_in_forks(socket_.native_handle());
    }
    ~Channel() {
        if (socket_.is_open()) keep_in_forks(socket_.native_handle());
        open_.erase(this);
    }
    Channel(const Channel&) = delete;

    // Receives the next message's body, of 1 to `bytes_max` bytes. disconnected: the connection ended; invalid: of another size.
    [[nodiscard]] asio::awaitable<Result<ByteBuffer>> receive(std::size_t bytes_max);
    // Receives the next message, which must be of that kind. A goodbye instead becomes its error, and is kept in farewell().
    template <typename ControlMessage>
    [[nodiscard]] asio::awaitable<Result<ControlMessage>> receive() {
        constexpr std::size_t kMost = std::max(ControlMessage::kBytesMax, wire::control::Goodbye::kBytesMax);
        const Result<ByteBuffer> body = co_await receive(kMost);
        if (!body) co_return tl::unexpected<Error>(body.error());
        if (const Status said = heed_goodbye(*body); !said) co_return tl::unexpected<Error>(said.error());
        co_return wire::control::decode<ControlMessage>(*body);
    }
    // If the message is a goodbye, returns its error.
    [[nodiscard]] Status heed_goodbye(Bytes body);
    [[nodiscard]] const std::optional<Farewell>& farewell() const { return farewell_; }
    [[nodiscard]] bool is_open() const { return socket_.is_open(); }  // false: this end was closed

    // Used during the meeting: waits until the message is written. Not while say() has something to write.
    [[nodiscard]] asio::awaitable<Status> send(ByteBuffer message);
    // Used after the meeting: written when the other end takes it. If that leaves more than kUnsentBytesMax, the channel is closed.
    void say(ByteBuffer message);
    void close();
    // Sends the reason first, if it can be written at once and there is memory for it.
    void close(const wire::control::Goodbye& goodbye) noexcept;
    // Returns the socket's descriptor, non-blocking: the channel has none any more. Negative: it was closed.
    [[nodiscard]] int release();

    // refused: the kernel reports another user at the other end. True: it reports the same user, so no cookie is needed.
    [[nodiscard]] Result<bool> same_user() const;
    // The text by which both ends identify the connection: the node's own "ip:port".
    [[nodiscard]] std::string local_endpoint() const;
    [[nodiscard]] std::string remote_endpoint() const;
    // The address on which the node that was connected to listens, as that node has bound it: a member's key signs it. One for the node's
    // end, one for the opener's.
    [[nodiscard]] std::string bound_here() const;
    [[nodiscard]] std::string bound_there() const;
    // The origin of the other end, as far as it cannot choose that: its process ("pid …") on a Unix socket; "loopback" on TCP, where any
    // process may have any address of 127.0.0.0/8.
    [[nodiscard]] std::string origin() const;
    [[nodiscard]] Result<asio::generic::stream_protocol::endpoint> remote() const;

private:
    [[nodiscard]] asio::awaitable<void> write_unsent();
    [[nodiscard]] std::size_t write_now(Bytes bytes);

    Socket socket_;
    std::set<Channel*>& open_;
    ByteBuffer unsent_;
    bool writing_ = false;
    std::size_t being_written_ = 0;  // bytes that write_unsent() has taken from `unsent_`
    std::optional<Farewell> farewell_;
};

}  // namespace rove::control
