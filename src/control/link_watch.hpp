// LinkWatch: links that the node has adopted. Each is watched by its control connection until that ends; then the loss of the peer is
// reported to the engine, and the loss of the member to the membership. Until then members may name others there.
//
// Threads: the control thread's.
//
// Invariant: the code that adopts a link makes an Unwatched of it at once. So the end of each link is reported to the engine, even if
// memory runs out before it is watched.
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <utility>

#include "control/channel.hpp"
#include "control/control_thread.hpp"
#include "control/host.hpp"
#include "control/membership.hpp"
#include "control/places.hpp"

namespace rove::control {

class LinkWatch {
public:
    // The other parts of the control plane that it uses. They outlive it.
    struct Beside {
        ControlThread& thread;
        Engines& engines;
        Membership& membership;
    };
    explicit LinkWatch(const Beside& beside)
        : thread_(beside.thread), engines_(beside.engines), membership_(beside.membership) {}
    LinkWatch(const LinkWatch&) = delete;

    // The peer for which a connection is watched.
    struct Watched {
        std::shared_ptr<PeerState> peer;
        std::uint64_t meeting = 0;
        NodeId member = kNoNode;  // its id if it is a member
        ClientIndex client{};     // its index if it is a client of this node
    };
    // A link that was adopted and is not watched yet: it ends with this object, unless it is taken to be watched.
    class Unwatched {
    public:
        Unwatched(LinkWatch& watch, Watched who) : watch_(&watch), who_(std::move(who)) {}
        Unwatched(Unwatched&& other) noexcept
            : watch_(std::exchange(other.watch_, nullptr)), who_(std::move(other.who_)) {}
        Unwatched& operator=(Unwatched&&) = delete;
        ~Unwatched();
        [[nodiscard]] Watched take() {
            watch_ = nullptr;
            return std::move(who_);
        }

    private:
        LinkWatch* watch_;  // null: it was taken
        Watched who_;
    };

    // `what`: names the conversation in the log if the watching itself fails.
    void begin(std::shared_ptr<Channel> channel, Unwatched link, const char* what) {
        thread_.spawn(watch(std::move(channel), std::move(link)), what);
    }

private:
    [[nodiscard]] asio::awaitable<void> watch(std::shared_ptr<Channel> channel, Unwatched link);

    ControlThread& thread_;
    Engines& engines_;
    Membership& membership_;
};

}  // namespace rove::control
