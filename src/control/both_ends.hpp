// What the opener of a meeting and the node that is called on both need for it.
//
// Threads: the control thread's; the function that hang_up_of() gives may be called from any thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "control/channel.hpp"
#include "control/control_thread.hpp"
#include "engine/locked_fabric.hpp"

namespace rove::control {

// Closes a channel when the time is up.
class ChannelDeadline {
public:
    ChannelDeadline(asio::io_context& io, std::shared_ptr<Channel> channel)
        : timer_(io), channel_(std::move(channel)) {}
    void set(std::chrono::milliseconds time) { set(Clock::now() + time); }
    void set(TimePoint until) {
        timer_.expires_at(until);
        timer_.async_wait([channel = channel_, late = late_](asio::error_code error) {
            if (error) return;
            *late = true;
            channel->close();
        });
    }
    [[nodiscard]] bool passed() const { return *late_; }

private:
    asio::steady_timer timer_;
    std::shared_ptr<Channel> channel_;
    std::shared_ptr<bool> late_ = std::make_shared<bool>(false);
};

// A link that is destroyed under the engine's lock if the meeting fails on the way.
class PendingLink {
public:
    explicit PendingLink(LockedFabric& fabric) : fabric_(fabric) {}
    ~PendingLink() { drop(); }
    PendingLink(const PendingLink&) = delete;
    void set(std::unique_ptr<fabric::Link> link) { link_ = std::move(link); }
    void drop() {
        if (link_) fabric_.drop(std::move(link_));
    }
    explicit operator bool() const { return link_ != nullptr; }
    fabric::Link& operator*() { return *link_; }
    fabric::Link* operator->() { return link_.get(); }
    std::unique_ptr<fabric::Link> take() { return std::move(link_); }

private:
    LockedFabric& fabric_;
    std::unique_ptr<fabric::Link> link_;
};

// Any thread may hang up; who does it says why, and the other end is told.
[[nodiscard]] std::function<void(const Error&)> hang_up_of(std::shared_ptr<Gate> gate,
                                                           const std::shared_ptr<Channel>& channel);

// The keys of a stream's rings, from the secret in the welcome. `node`: of the node's end, not of the opener's.
[[nodiscard]] fabric::StreamKeys stream_keys(const wire::control::LaneSecret& secret, bool node);

}  // namespace rove::control
