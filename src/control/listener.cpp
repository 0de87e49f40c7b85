#include "control/listener.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <asio/experimental/as_tuple.hpp>
#include <asio/use_awaitable.hpp>

#include "base/fork_descriptors.hpp"
#include "base/log.hpp"
#include "base/unix_socket.hpp"

namespace rove::control {
namespace {

constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);

}  // namespace

Result<Address> Listener::open(const std::string& text, TimePoint until) {
    ROVE_TRY(Address address, parse_address(text));
    ROVE_TRY(const auto endpoints, resolve_until(address, until));
    const auto& endpoint = endpoints.front();
    std::optional<PathLock> path_lock;
    if (address.is_unix()) path_lock.emplace(address.path);
    const AtPath found = address.is_unix() ? clear_path(address.path) : AtPath::nothing;
    if (found == AtPath::no_socket)
        return fail(ErrorCode::invalid, "cannot listen on {}: it is there and is no socket; choose another path", text);
    asio::error_code error;
    acceptor_.emplace(thread_.io());
    acceptor_->open(endpoint.protocol(), error);
    if (!error) (void)fcntl(acceptor_->native_handle(), F_SETFD, FD_CLOEXEC);
    if (!error) refuse_descriptors(acceptor_->native_handle());
    // No process would serve connections that the child's copy accepts.
    if (!error) close_in_forks(acceptor_->native_handle());
    if (!error && !address.is_unix()) acceptor_->set_option(asio::socket_base::reuse_address(true), error);
    const auto bind = [&] {
        acceptor_->bind(endpoint, error);
        return !error;
    };
    if (!error && address.is_unix())
        socket_file_.make(address.path, bind);
    else if (!error)
        (void)bind();
    if (!error) acceptor_->listen(asio::socket_base::max_listen_connections, error);
    if (error == asio::error::address_in_use)
        return fail(ErrorCode::invalid, "cannot listen on {}: another process does; choose another{}", text,
                    address.is_unix() ? " path" : " port, or port 0 for a free one");
    if (error) return fail(ErrorCode::invalid, "cannot listen on {}: {}", text, error.message());
    if (address.is_unix())
        chmod(address.path.c_str(), 0600);
    else
        address = *parse_address(endpoint_text(acceptor_->local_endpoint()));
    return address;
}

void Listener::accept() {
    thread_.spawn(accept_all(Accepting(&has_ended_)), "accepting connections");
}

void Listener::go_on() {
    if (std::exchange(has_ended_, false) && acceptor_->is_open()) accept();
}

// If there is no memory to wait for the next connection, the exception leaves this coroutine; go_on() starts another one.
asio::awaitable<void> Listener::accept_all(Accepting /*accepting*/) {
    for (bool told = false;;) {
        try {
            auto [error, socket] = co_await acceptor_->async_accept(thread_.io(), kAwait);
            if (error == asio::error::operation_aborted || !acceptor_->is_open()) co_return;
            if (!error) {
                told = false;
                take_(std::move(socket));
                continue;
            }
            // For example, no descriptor is free; one may be soon.
            if (!std::exchange(told, true))
                log().error("{} cannot take connections ({}); who connects waits until it can", name_(),
                            error.message());
            co_await thread_.pause(std::chrono::milliseconds(100));
        } catch (const std::bad_alloc&) {  // the connection is closed
            log().error("{} cannot take a connection: memory ran out", name_());
        }
    }
}

void Listener::close() {
    if (!acceptor_ || !acceptor_->is_open()) return;
    asio::error_code ignored;
    keep_in_forks(acceptor_->native_handle());
    acceptor_->close(ignored);
}

void Listener::drop() {
    close();
    acceptor_.reset();
}

void Listener::stop() {
    thread_.gate()->post([this] { close(); });
    socket_file_.remove();
}

}  // namespace rove::control
