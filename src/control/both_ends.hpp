// What both ends of a meeting need: the one that opens it, and the one that it is opened to.
//
// Threads: the control thread's; the function that hang_up_of() returns may be called from any thread.
//
// Invariant: a PendingLink's link belongs to the fabric of the engine that was chosen, and is adopted by that engine or dropped through it. The
// engine counts the pending peer until the PendingLink is destroyed.
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

// Closes a channel when the time is over.
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

// A meeting's link, and the engine that has opened it. If the meeting fails, the link is destroyed under that engine's lock.
class PendingLink {
public:
    explicit PendingLink(Engines& engines) : engines_(engines) {}
    ~PendingLink();
    PendingLink(const PendingLink&) = delete;

    // Called once, first: see Engines::choose.
    void choose_engine(const PeerState* old, NodeId member) { engine_ = engines_.choose(old, member); }
    [[nodiscard]] bool has_streams() const;
    // Opens a direct link to be offered or connected. Afterwards there is none if the fabric has none, and has streams instead.
    [[nodiscard]] Status open();
    // unsupported: it does not reach that end, so a stream must be used. Precondition, as below: there is a link.
    [[nodiscard]] Status connect(Bytes offer);
    [[nodiscard]] Status open_stream(int socket, const fabric::StreamKeys& keys);
    void drop();
    // The link becomes a peer's.
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

// Any thread may hang up; it gives the reason, which is sent to the other end.
[[nodiscard]] std::function<void(const Error&)> hang_up_of(std::shared_ptr<Gate> gate,
                                                           const std::shared_ptr<Channel>& channel);

// The keys of a stream's rings, from the secret in the welcome. `node`: for the node's end, not for the opener's.
[[nodiscard]] fabric::StreamKeys stream_keys(const wire::control::LaneSecret& secret, bool node);

}  // namespace rove::control
