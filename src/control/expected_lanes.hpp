// Streams that a node expects: each is the second connection of a meeting, and shows the ticket that the node gave on the first.
//
// Threads: the control thread's. Invariants: a ticket is valid exactly as long as its Place exists, and brings one socket at most. A socket that
// was not taken from its Place is closed with it.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <vector>

#include "base/result.hpp"
#include "control/channel.hpp"
#include "wire/control.hpp"

namespace rove::control {

class ExpectedLanes {
public:
    ExpectedLanes() = default;
    ExpectedLanes(const ExpectedLanes&) = delete;

    // Takes the socket of `channel` for the meeting that gave this ticket. refused: no meeting did, or it has a socket already.
    [[nodiscard]] Status bring(Channel& channel, const wire::control::Ticket& ticket);

    // The ticket of one meeting, valid until that has ended.
    class Place {
    public:
        Place(ExpectedLanes& all, asio::io_context& io);
        ~Place();
        Place(const Place&) = delete;
        [[nodiscard]] const wire::control::Ticket& ticket() const { return ticket_; }
        // Returns the socket, which the caller then owns. timed_out: no process brought it in that time.
        [[nodiscard]] asio::awaitable<Result<int>> wait(std::chrono::milliseconds time);

    private:
        friend class ExpectedLanes;
        ExpectedLanes& all_;
        const wire::control::Ticket ticket_;
        asio::steady_timer arrived_;
        int socket_ = -1;
    };

private:
    std::vector<Place*> places_;
};

}  // namespace rove::control
