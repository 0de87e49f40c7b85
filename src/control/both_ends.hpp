// What the opener of a meeting and the node that is called on both need for it.
//
// Threads: the control thread's; the function that hang_up_of() gives may be called from any thread.
//
// Invariant: a PendingLink's link belongs to the fabric of the engine that was chosen, and is adopted by that engine or dropped through it. The
// engine counts the pending peer until this is destroyed.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "control/channel.hpp"
#include "control/control_thread.hpp"
#include "control/host.hpp"

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

// A meeting's link, and the engine that has opened it. If the meeting fails on the way the link is destroyed under that engine's lock.
class PendingLink {
public:
    explicit PendingLink(Engines& engines) : engines_(engines) {}
    ~PendingLink();
    PendingLink(const PendingLink&) = delete;

    // Once, before all else: Engines::choose.
    void choose_engine(const PeerState* old, NodeId member) { engine_ = engines_.choose(old, member); }
    [[nodiscard]] bool has_streams() const;
    // A direct link to be offered or connected. There is none afterwards where the fabric has none, and streams in their place.
    [[nodiscard]] Status open();
    // unsupported: it does not reach that end, and a stream must do. Precondition, as below: there is a link.
    [[nodiscard]] Status connect(Bytes offer);
    [[nodiscard]] Status open_stream(int socket, const fabric::StreamKeys& keys);
    void drop();
    // It becomes a peer's.
    [[nodiscard]] Result<Peers::Adopted> adopt(Meeting meeting, std::shared_ptr<PeerState> old) {
        return engines_.adopt(engine_, std::move(meeting), link_, std::move(old));
    }
    explicit operator bool() const { return link_ != nullptr; }
    [[nodiscard]] ByteBuffer offer() const { return link_->offer(); }

private:
    Engines& engines_;
    ChosenEngine engine_;
    std::unique_ptr<fabric::Link> link_;
};

// Any thread may hang up; who does it says why, and the other end is told.
[[nodiscard]] std::function<void(const Error&)> hang_up_of(std::shared_ptr<Gate> gate,
                                                           const std::shared_ptr<Channel>& channel);

// The keys of a stream's rings, from the secret in the welcome. `node`: of the node's end, not of the opener's.
[[nodiscard]] fabric::StreamKeys stream_keys(const wire::control::LaneSecret& secret, bool node);

}  // namespace rove::control
