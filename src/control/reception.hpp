// Reception: the connections that arrive at this node, until their opener is known: each is the lane of a meeting in progress, or a process
// that proves that it belongs to the same user, and asks to be admitted (Arrival).
//
// Threads: the control thread's.
//
// Invariants: at most kUnprovenMax connections have proven nothing, and at most kMeetingsMax others are being admitted. The places here
// outlive the conversations that hold them.
#pragma once

#include <asio/awaitable.hpp>
#include <memory>

#include "base/result.hpp"
#include "control/arrival.hpp"
#include "control/own_cookie.hpp"
#include "peer/complaints.hpp"

namespace rove::control {

// How long a connection that has proven nothing may take for its first message. Over loopback it arrives in microseconds.
inline constexpr auto kHelloTimeMax = std::chrono::seconds(1);
// Concurrent proven meetings. Each costs mailboxes (2 MiB, of which only written pages count) and 64 KiB of messages at most (a welcome
// alone may have 48); more of them are refused as overloaded.
inline constexpr std::size_t kMeetingsMax = 256;
static_assert(kMeetingsMax < kOtherLinksMax);  // each may have a link

class Reception {
public:
    // `beside`: given to each arrival.
    Reception(const Arrival::Beside& beside, OwnCookie& cookie) : beside_(beside), cookie_(cookie) {}
    Reception(const Reception&) = delete;

    // Takes a connection that has arrived.
    void receive(std::shared_ptr<Channel> channel) {
        beside_.thread.spawn(receive_one(std::move(channel)), "a meeting");
    }
    void drop() { strangers_.clear(); }  // before the thread's io_context is destroyed

private:
    [[nodiscard]] asio::awaitable<void> receive_one(std::shared_ptr<Channel> channel);
    [[nodiscard]] asio::awaitable<Status> welcome(Guest& guest, Strangers::Place& stranger);
    [[nodiscard]] asio::awaitable<Status> converse(Guest& guest, Strangers::Place& stranger, bool same_user,
                                                   ChannelDeadline& deadline);
    [[nodiscard]] asio::awaitable<Status> await_identity(Guest& guest);
    [[nodiscard]] asio::awaitable<Status> check_guest(const Guest& guest, bool same_user, Strangers::Place& stranger);

    const Arrival::Beside beside_;
    OwnCookie& cookie_;
    ClientIndexes clients_;
    Strangers strangers_;
    ExpectedLanes expected_lanes_;
    std::size_t meetings_ = 0;  // guests that are being admitted
    Complaints complaints_;     // about strangers
};

}  // namespace rove::control
