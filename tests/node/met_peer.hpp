// Peers that have been met, for parts that are tested alone.
#pragma once

#include <memory>
#include <utility>

#include "no_fabric.hpp"
#include "peer/peer_state.hpp"

namespace rove::test {

// As an engine does when a link is made, each time by another number. Without a link of the test's own it is one that goes nowhere.
inline void meet(PeerState& peer, PeerIdentity as, NodeId back, std::shared_ptr<fabric::Link> link = {},
                 PeerState::HangUp hang_up = {}) {
    static std::atomic<std::uint64_t> meetings{0};
    if (!link) link = std::make_shared<NoLink>();
    peer.meet(std::move(as), back, std::move(link), ++meetings, std::move(hang_up));
}

}  // namespace rove::test
