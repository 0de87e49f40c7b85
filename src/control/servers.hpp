// Servers: nodes of which this one is a client, by the addresses at which it has met them, so that each is met again as the same peer.
//
// Threads: the control thread's. Invariant: one peer at most for each address; the entry does not keep the peer alive.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "peer/peer_state.hpp"

namespace rove::control {

class Servers {
public:
    // `address`: as canonical() spells it. Null: none was met there, or no handle of it exists any more.
    [[nodiscard]] std::shared_ptr<PeerState> at(const std::string& address) const;
    // Replaces another one that was met there. Those of which no handle exists any more are forgotten.
    void met(const std::string& address, const std::shared_ptr<PeerState>& peer);
    [[nodiscard]] std::size_t size() const { return peers_.size(); }

private:
    std::map<std::string, std::weak_ptr<PeerState>> peers_;
};

}  // namespace rove::control
