// Listener: the socket on which a node accepts connections, until stop().
//
// Threads: open(), accept() and stop() from the threads that start and end the node, one call at a time; all else on the control thread, or
// while that does not run.
//
// Invariants: after accept() one conversation accepts connections while the socket is open; if memory ran out for it, the control thread's next
// turn begins another (go_on). The socket's file exists as long as connections are accepted.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/basic_socket_acceptor.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "control/address.hpp"
#include "control/channel.hpp"
#include "control/control_thread.hpp"
#include "control/socket_file.hpp"

namespace rove::control {

class Listener {
public:
    // `take` is given each connection. Both outlive this.
    Listener(ControlThread& thread, std::function<std::string()> name, std::function<void(Socket)> take)
        : thread_(thread), name_(std::move(name)), take_(std::move(take)) {}
    Listener(const Listener&) = delete;

    // Returns the address with its actual port. Connections wait until accept(). The name is resolved until the given time.
    [[nodiscard]] Result<Address> open(const std::string& text, TimePoint until);
    void accept();
    // Accepts again, if there was no memory to wait for the next connection.
    void go_on();
    // No connection is accepted any more, and the socket's file is removed.
    void stop();
    void drop();  // before the thread's io_context is destroyed

private:
    // Notes that the conversation has ended, however it did.
    struct Ended {
        void operator()(bool* has_ended) const { *has_ended = true; }
    };
    using Accepting = std::unique_ptr<bool, Ended>;
    [[nodiscard]] asio::awaitable<void> accept_all(Accepting accepting);
    void close();

    ControlThread& thread_;
    const std::function<std::string()> name_;
    const std::function<void(Socket)> take_;
    bool has_ended_ = false;  // there was no memory to wait; the socket is open
    std::optional<asio::basic_socket_acceptor<asio::generic::stream_protocol>> acceptor_;
    SocketFile socket_file_;  // removed at the end
};

}  // namespace rove::control
