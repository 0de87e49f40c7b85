// How messages name a peer.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "node/peer_state.hpp"

namespace rove {

// "node 1 at unix:/tmp/b", "client 2": the address where there is one, because a program that met several clusters has several nodes 0.
[[nodiscard]] inline std::string who(NodeId id, std::string_view address) {
    if (is_client(id)) return fmt::format("client {}", id & 0xFFFFU);
    return address.empty() ? fmt::format("node {}", id) : fmt::format("node {} at {}", id, address);
}
[[nodiscard]] inline std::string who(const PeerState& peer) {
    return who(peer.id, peer.address);
}

// " (the reason)", or nothing where none is known.
[[nodiscard]] inline std::string because(const std::string& reason) {
    return reason.empty() ? reason : " (" + reason + ")";
}

}  // namespace rove
