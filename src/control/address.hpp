// The address on which a node listens: "host:port", "[v6]:port" or "unix:PATH". Loopback and Unix sockets only, until there is a key.
//
// Threads: any; resolving a name may take seconds. No state: an Address is a plain value.
#pragma once

#include <asio/generic/stream_protocol.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace rove::control {

struct Address {
    std::string host;        // empty for a Unix socket
    std::uint16_t port = 0;  // 0: choose one, when listening
    std::string path;        // the path of the Unix socket

    [[nodiscard]] bool is_unix() const { return !path.empty(); }
    [[nodiscard]] std::string to_string() const;
};

// invalid: not of one of the three forms, a port over 65535, a path too long for a socket (107 bytes).
[[nodiscard]] Result<Address> parse_address(std::string_view text);

// The endpoints to listen on or to connect to, at least one. refused: the host means more than this machine's loopback. `numeric`: a peer
// has sent the address, and its names are not resolved.
[[nodiscard]] Result<std::vector<asio::generic::stream_protocol::endpoint>> resolve(const Address& address,
                                                                                    bool numeric = false);

// The same, with a time limit. timed_out: the name was not resolved by then.
[[nodiscard]] Result<std::vector<asio::generic::stream_protocol::endpoint>> resolve_until(const Address& address,
                                                                                          TimePoint deadline);

// One text for all spellings of an endpoint: "ip:port", or "unix:" and the path as the file system has it.
[[nodiscard]] std::string canonical(const asio::generic::stream_protocol::endpoint& endpoint);

// "ip:port", or "unix:" and the path as the listening node has bound it: the same text at both ends of a connection.
[[nodiscard]] std::string bound_text(const asio::generic::stream_protocol::endpoint& endpoint);

// "ip:port" of a TCP endpoint as both of its ends see it; "unix" for a Unix socket.
[[nodiscard]] std::string endpoint_text(const asio::generic::stream_protocol::endpoint& endpoint);

}  // namespace rove::control
