// Where a node can be called on: a socket that takes connections until it is told to stop.
//
// Threads: open() and stop() from any; all else on the control thread, or while it does not run.
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

    // Gives the address with its real port. Whoever connects waits until accept(). Its name is looked up until the given time.
    [[nodiscard]] Result<Address> open(const std::string& text, TimePoint until);
    void accept();
    // Accepts again, where memory was too short to wait for the next connection.
    void go_on();
    // Nobody is accepted any more, and the socket's file is removed.
    void stop();
    void drop();  // before the thread's io_context goes

private:
    // Its end says that nobody accepts any more.
    struct Ended {
        void operator()(bool* has_ended) const { *has_ended = true; }
    };
    using Accepting = std::unique_ptr<bool, Ended>;
    [[nodiscard]] asio::awaitable<void> accept_all(Accepting accepting);
    void close();

    ControlThread& thread_;
    const std::function<std::string()> name_;
    const std::function<void(Socket)> take_;
    bool has_ended_ = false;  // though it was not closed: memory was too short
    std::optional<asio::basic_socket_acceptor<asio::generic::stream_protocol>> acceptor_;
    SocketFile socket_file_;  // removed at the end
};

}  // namespace rove::control
