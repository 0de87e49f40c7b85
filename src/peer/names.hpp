// How messages name a peer.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "peer/peer_state.hpp"

namespace rove {

// "node 1 at unix:/tmp/b", "client 2": the address where there is one, because a program that met several clusters has several nodes 0.
[[nodiscard]] inline std::string who(NodeId id, std::string_view address) {
    if (is_client(id)) return fmt::format("client {}", id & 0xFFFFU);
    return address.empty() ? fmt::format("node {}", id) : fmt::format("node {} at {}", id, address);
}
[[nodiscard]] inline std::string who(const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    return who(peer.id(), peer.identity().address);
}

// The error of calls that still wait when a node has ended.
[[nodiscard]] inline Error was_shut_down(const std::string& node) {
    return {ErrorCode::cancelled, node + " was shut down"};
}

// " (the reason)", or nothing where none is known.
[[nodiscard]] inline std::string because(const std::string& reason) {
    return reason.empty() ? reason : " (" + reason + ")";
}

}  // namespace rove
