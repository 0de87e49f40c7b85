// LinkWatch: links that the node has adopted. Each is watched by its control connection until that ends; then the engine is told that the
// peer is lost, and the membership that the member went. Meanwhile members may name others there.
//
// Threads: the control thread's.
//
// Invariant: whoever adopts a link makes an Unwatched of it at once. So the engine is told of each link's end, even where memory runs out
// before anybody watches it.
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

    // Whom a connection is watched for.
    struct Watched {
        std::shared_ptr<PeerState> peer;
        std::uint64_t meeting = 0;
        NodeId member = kNoNode;  // as which it is a member
        ClientIndex client{};     // as which it is a client of this node
    };
    // A link that was adopted and that nobody watches yet: it ends with this, unless somebody takes it from here to watch it.
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

    // `what`: for the log, if the watching itself fails.
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
