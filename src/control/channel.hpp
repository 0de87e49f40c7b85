// A control connection: messages (wire/control.hpp) over a loopback TCP or Unix socket. Its end tells that the process at
// the other end is gone, within microseconds of its death.
//
// Threads: all of it on the control thread (the io_context's).
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

// Bytes that were said and not taken by the other end yet. Lists of members, 1024 of them at most twice, are all that there
// is to be said unasked: 2 x 235 KiB, and as much again.
inline constexpr std::size_t kUnsentBytesMax = 940UL * 1024;

// The other end said goodbye: as an error for people, and as what it was.
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

    // While they meet: waits until it is written.
    [[nodiscard]] asio::awaitable<Status> send(ByteBuffer message);
    // Afterwards: written when the other end takes it. One that does not is hung up on.
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
