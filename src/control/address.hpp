// Where a node listens: "host:port", "[v6]:port" or "unix:PATH". Loopback and Unix sockets only, until there is a key.
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
    std::uint16_t port = 0;  // 0: pick one, when listening
    std::string path;        // of the Unix socket

    [[nodiscard]] bool is_unix() const { return !path.empty(); }
    [[nodiscard]] std::string to_string() const;
};

// invalid: not of one of the three shapes, a port over 65535, a path too long for a socket (107 bytes).
[[nodiscard]] Result<Address> parse_address(std::string_view text);

// The endpoints to listen on or to connect to, at least one. refused: the host means more than this machine's loopback.
// `numeric`: the address came from a peer, and nobody is asked what a name means.
[[nodiscard]] Result<std::vector<asio::generic::stream_protocol::endpoint>> resolve(const Address& address,
                                                                                    bool numeric = false);

// The same, with a time limit. timed_out: what the name means was not known by then.
[[nodiscard]] Result<std::vector<asio::generic::stream_protocol::endpoint>> resolve_until(const Address& address,
                                                                                          TimePoint deadline);

// The same for all spellings of an endpoint: "ip:port", or "unix:" and the path as the file system has it.
[[nodiscard]] std::string canonical(const asio::generic::stream_protocol::endpoint& endpoint);

// "ip:port", or "unix:" and the path as whoever listens there has bound it: one text at both ends of a connection.
[[nodiscard]] std::string bound_text(const asio::generic::stream_protocol::endpoint& endpoint);

// "ip:port" of a TCP endpoint as both of its ends see it; "unix" for a Unix socket.
[[nodiscard]] std::string endpoint_text(const asio::generic::stream_protocol::endpoint& endpoint);

}  // namespace rove::control
