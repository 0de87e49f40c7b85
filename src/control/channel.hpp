// A control connection: messages (wire/control.hpp) over a loopback TCP or Unix socket. When the process at the other end dies, the kernel
// closes the connection within microseconds, which is how this node notices.
//
// Threads: all of it on the control thread (the io_context's).
//
// Invariants: messages are sent whole and in order: while `writing_` is set, one conversation (write_unsent) writes, and what say() gets is
// appended to `unsent_`. A forked child has no copy of an open socket. A channel that was closed or released stays so.
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

// Bytes that say() was given and the other end has not taken yet. Only lists of members are sent without being asked for: 1024 members,
// twice at most, are 2 x 235 KiB. The bound is twice that.
inline constexpr std::size_t kUnsentBytesMax = 940UL * 1024;

// The goodbye that the other end has sent; error() says it to people.
struct Farewell {
    wire::control::Goodbye goodbye;
    [[nodiscard]] Error error() const;
};

class Channel : public std::enable_shared_from_this<Channel> {
public:
    // Is in `open` for as long as it lives, which is no longer than the set.
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

    // The next message's body, of 1 to `bytes_max` bytes. disconnected: the connection ended; invalid: of another size.
    [[nodiscard]] asio::awaitable<Result<ByteBuffer>> receive(std::size_t bytes_max);
    // The next message, which must be of that kind. A goodbye instead is the error it says, and kept in farewell().
    template <typename Message>
    [[nodiscard]] asio::awaitable<Result<Message>> receive() {
        constexpr std::size_t kMost = std::max(Message::kBytesMax, wire::control::Goodbye::kBytesMax);
        const Result<ByteBuffer> body = co_await receive(kMost);
        if (!body) co_return tl::unexpected<Error>(body.error());
        if (const Status said = heed_goodbye(*body); !said) co_return tl::unexpected<Error>(said.error());
        co_return wire::control::decode<Message>(*body);
    }
    // The goodbye's error where the message is one.
    [[nodiscard]] Status heed_goodbye(Bytes body);
    [[nodiscard]] const std::optional<Farewell>& farewell() const { return farewell_; }
    [[nodiscard]] bool is_open() const { return socket_.is_open(); }  // this end was not closed

    // During the meeting: waits until it is written. Not while say() has something to write.
    [[nodiscard]] asio::awaitable<Status> send(ByteBuffer message);
    // After the meeting: written when the other end takes it. If that leaves more than kUnsentBytesMax, the channel is closed.
    void say(ByteBuffer message);
    void close();
    // Says why first, where that can be written at once.
    void close(const wire::control::Goodbye& goodbye);
    // The socket's descriptor, non-blocking: the channel has none any more. Negative: it was closed.
    [[nodiscard]] int release();

    // refused where the kernel says that the other end is another user. True: it said the same user, so no cookie is needed.
    [[nodiscard]] Result<bool> same_user() const;
    // What both ends know the connection by: the node's own "ip:port".
    [[nodiscard]] std::string local_endpoint() const;
    [[nodiscard]] std::string remote_endpoint() const;
    // Where the node listens that was called on, as that node has bound it: what a member's key signs. Of the node's end, and the opener's.
    [[nodiscard]] std::string bound_here() const;
    [[nodiscard]] std::string bound_there() const;
    // Where the other end is, as far as it cannot choose that: its process ("pid …") on a Unix socket; "loopback" on TCP, where any
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
    std::optional<Farewell> farewell_;
};

}  // namespace rove::control
