// Reception: the connections that arrive at this node, until it is known who has opened each of them: the lane of a meeting that is under
// way, or a process that proves that it belongs to the same user, and asks to be let in (Arrival).
//
// Threads: the control thread's.
//
// Invariants: at most kUnprovenMax connections have proven nothing, and at most kMeetingsMax others are being let in. The places here outlive
// the conversations that hold them.
#pragma once

#include <asio/awaitable.hpp>
#include <memory>

#include "base/result.hpp"
#include "control/arrival.hpp"
#include "control/own_cookie.hpp"
#include "peer/complaints.hpp"

namespace rove::control {

// How long a connection that has proven nothing may take for its first message. Loopback brings it in microseconds.
inline constexpr auto kHelloTimeMax = std::chrono::seconds(1);
// Proven meetings under way at once. Each costs mailboxes (2 MiB, of which what is written counts) and 64 KiB of messages
// at most (a welcome alone may have 48); more of them are refused as overloaded.
inline constexpr std::size_t kMeetingsMax = 256;

class Reception {
public:
    // `beside`: for each arrival.
    Reception(const Arrival::Beside& beside, OwnCookie& cookie) : beside_(beside), cookie_(cookie) {}
    Reception(const Reception&) = delete;

    // A connection that has arrived.
    void receive(std::shared_ptr<Channel> channel) {
        beside_.thread.spawn(receive_one(std::move(channel)), "a meeting");
    }
    void drop() { strangers_.clear(); }  // before the thread's io_context goes

private:
    [[nodiscard]] asio::awaitable<void> receive_one(std::shared_ptr<Channel> channel);
    [[nodiscard]] asio::awaitable<Status> welcome(Guest& guest, Strangers::Place& stranger);
    [[nodiscard]] asio::awaitable<Status> await_identity(Guest& guest);
    [[nodiscard]] asio::awaitable<Status> check_guest(const Guest& guest, bool same_user, Strangers::Place& stranger);

    const Arrival::Beside beside_;
    OwnCookie& cookie_;
    ClientIndexes clients_;
    Strangers strangers_;
    ExpectedLanes expected_lanes_;
    std::size_t meetings_ = 0;  // of guests that are being let in
    Complaints complaints_;     // of strangers
};

}  // namespace rove::control
