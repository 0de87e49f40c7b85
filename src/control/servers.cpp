#include "control/servers.hpp"

namespace rove::control {

std::shared_ptr<PeerState> Servers::at(const std::string& address) const {
    const auto found = peers_.find(address);
    return found != peers_.end() ? found->second.lock() : nullptr;
}

void Servers::met(const std::string& address, const std::shared_ptr<PeerState>& peer) {
    std::erase_if(peers_, [](const auto& each) { return each.second.expired(); });
    peers_[address] = peer;
}

}  // namespace rove::control
