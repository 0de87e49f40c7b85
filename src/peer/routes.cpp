#include "peer/routes.hpp"

#include <algorithm>
#include <iterator>

#include "peer/peer_state.hpp"
#include "wire/kinds.hpp"

namespace rove {

NodeId Routes::name_for(const PeerIdentity& met, NodeId former) {
    if (met.member || is_client(met.id)) return met.id;
    const bool has_name = (former & kForeignBit) != 0 && !is_client(former);
    return has_name ? former : node_.new_foreign_name();
}

// Both, because a frame of a hostile peer may name kNoNode.
void Routes::forget_last() {
    routed_ = nullptr;
    routed_id_ = kNoNode;
}

void Routes::enter(PeerState& peer) {
    forget_last();
    if (is_client(peer.id())) {
        clients_[peer.id()] = &peer;
    } else if (!peer.is_member()) {
        foreign_[peer.back()] = &peer;
        leave_address(peer);
        foreign_at_.emplace(peer.identity().address, &peer);  // after those that were met before
    } else {
        if (members_.size() <= peer.id()) members_.resize(peer.id() + 1, nullptr);
        members_[peer.id()] = &peer;
    }
    others_.entered(peer.back());
}

void Routes::leave_address(const PeerState& peer) {
    const auto [first, last] = foreign_at_.equal_range(peer.identity().address);
    const auto found = std::find_if(first, last, [&peer](const auto& each) { return each.second == &peer; });
    if (found != last) foreign_at_.erase(found);
}

PeerState* Routes::foreign_at(std::string_view address) const {
    const auto [first, last] = foreign_at_.equal_range(address);
    if (first == last) return nullptr;
    for (auto each = last; each != first;)
        if (PeerState* const peer = (--each)->second; peer->linked()) return peer;
    return std::prev(last)->second;
}

NodeId Routes::way_to(NodeId node) const {
    const bool has_own_name = is_client(node) ? is_home_of(node) : (node & kForeignBit) != 0;
    return has_own_name ? node : home_of(node);
}

void Routes::leave(const PeerState& peer) {
    forget_last();
    bool had_name = peer.is_member() && member(peer.id()) == &peer;
    if (had_name) members_[peer.id()] = nullptr;
    const auto erase = [&peer](auto& from, const auto& name) {
        const auto found = from.find(name);
        if (found == from.end() || found->second != &peer) return false;
        from.erase(found);
        return true;
    };
    had_name = erase(clients_, peer.id()) || had_name;
    had_name = erase(foreign_, peer.back()) || had_name;
    leave_address(peer);
    if (had_name) others_.left(peer.back());  // otherwise a peer has it that was met since
}

PeerState* Routes::to(NodeId node) const {
    if (node == routed_id_) return routed_;
    const auto find_in = [node](const auto& all) {
        const auto found = all.find(node);
        return found != all.end() ? found->second : nullptr;
    };
    if (is_client(node) && is_home_of(node)) {
        PeerState* const client = find_in(clients_);
        routed_ = client;
        routed_id_ = client != nullptr ? node : kNoNode;
        return client;
    }
    if ((node & kForeignBit) != 0 && !is_client(node)) return find_in(foreign_);
    return member(home_of(node));
}

bool Routes::sends_on(const PeerState& from, const wire::FrameHeader& header) const {
    return wire::rule_of(header.kind).routed != wire::Routed::no && header.node != from.my_id() && header.node != id();
}

}  // namespace rove
