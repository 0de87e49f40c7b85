// How messages name a peer.
#pragma once

#include <fmt/format.h>

#include <string>

#include "node/peer_state.hpp"

namespace rove {

// "node 1 at unix:/tmp/b", "client 2": the address where there is one, for several clusters have a node 0.
[[nodiscard]] inline std::string who(const PeerState& peer) {
    if (is_client(peer.id)) return fmt::format("client {}", peer.id & 0xFFFFU);
    return peer.address.empty() ? fmt::format("node {}", peer.id) : fmt::format("node {} at {}", peer.id, peer.address);
}

// " (the reason)", or nothing where none is known.
[[nodiscard]] inline std::string because(const std::string& reason) {
    return reason.empty() ? reason : " (" + reason + ")";
}

}  // namespace rove
