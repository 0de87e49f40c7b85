#include "control/membership.hpp"

#include <algorithm>

#include "base/log.hpp"

namespace rove::control {

using State = MemberEntry::State;
using Trust = MemberEntry::Trust;
using wire::control::Certificate;
using wire::control::Member;

void Membership::i_am(NodeId id, std::uint32_t generation) {
    members_.set({id, generation, self_.address(), self_.keys().key()}, State::living);
    routes_.set_identity(id, members_.count());
    self_.set_member();
}

void Membership::begin_cluster() {
    const NodeId id = routes_.id();
    self_.set_cluster(random_id<wire::control::Cluster>());
    i_am(id, 1);
    self_.set_certificate(certify(id));
}

void Membership::is_joining(const wire::control::Welcome& welcome) {
    self_.set_cluster(welcome.cluster);
    routes_.set_identity(welcome.you, welcome.count);
}

void Membership::has_joined(const wire::control::Welcome& welcome, const Certificate& certificate,
                            const std::string& address) {
    self_.set_certificate(certificate);
    i_am(welcome.you, certificate.generation);
    members_.set({welcome.id, 1, address, welcome.key}, State::lost);
}

Certificate Membership::certify(NodeId id) const {
    return self_.certify(id, *members_.find(id), routes_.id());
}

bool Membership::gives_ids(NodeId id) const {
    const MemberEntry* entry = members_.find(id);
    if (entry == nullptr || entry->trust != Trust::proven || !entry->is_there()) return false;
    return id == routes_.id() || id == members_.lowest() || id == self_.certificate().issuer;
}

void Membership::is_here(NodeId id, const Peers::Adopted& adopted, const std::shared_ptr<Channel>& channel) {
    MemberEntry* entry = members_.find(id);
    const bool again = entry->meeting != 0;
    const bool news = entry->trust != Trust::proven;
    members_.set({id, entry->generation, entry->address, entry->key}, State::living);
    entry->peer = adopted.peer;
    entry->meeting = adopted.meeting;
    channels_[id] = channel;
    routes_.set_node_count(members_.count());
    if (news) tell({{id, entry->generation, entry->address, entry->key}}, id);
    if ((!again && entry->let_in_here) || members_.lowest() != routes_.id()) return;
    // Each may have heard of others while the two had no link. Who has just joined has been told already.
    tell_all_members(id, *channel);
}

void Membership::tell_all_members(NodeId to, Channel& channel) {
    std::vector<Member> all = members_.list(to);
    for (std::size_t begin = 0; begin < all.size(); begin += wire::control::Members::kMost) {
        const std::size_t end = std::min(all.size(), begin + wire::control::Members::kMost);
        channel.say(encode(wire::control::Members{.members = {all.begin() + static_cast<std::ptrdiff_t>(begin),
                                                              all.begin() + static_cast<std::ptrdiff_t>(end)}}));
    }
}

void Membership::went(NodeId id, std::uint64_t meeting, bool left) {
    MemberEntry* entry = members_.find(id);
    if (entry == nullptr || entry->meeting != meeting || entry->state != State::living) return;
    entry->state = State::lost;
    if (left) return is_gone(id, entry->key, "it left", true);
    meet_again(id);
}

void Membership::is_gone(NodeId id, const wire::control::PublicKey& key, const std::string& why, bool said) {
    MemberEntry* entry = members_.find(id);
    if (entry == nullptr || !entry->is_there() || entry->key != key || id == routes_.id()) return;
    entry->has_gone();
    if (!said) log().info("{}: node {} at {} is gone: {}", name_(), id, entry->address, why);
    if (const std::shared_ptr<PeerState> peer = entry->peer.lock())
        peers_.lose(peer, entry->meeting, Error(ErrorCode::disconnected, why));
    peers_.member_gone(id, fmt::format("node {} at {} is gone: {}", id, entry->address, why));
    channels_.erase(id);
}

void Membership::is_expected(NodeId id) {
    const MemberEntry* entry = members_.find(id);
    peers_.member_expected(id, entry->key, fmt::format("node {} at {} has not been met yet", id, entry->address));
}

void Membership::meet_again(NodeId id) {
    is_expected(id);
    meet_again_(id);
}

void Membership::heard_of(const std::vector<Member>& members, NodeId from) {
    if (!gives_ids(from)) return;  // each new member comes by itself, with its certificate
    for (const Member& member : members) {
        if (member.id == routes_.id() || member.id == from || !members_.learn(member)) continue;
        meet_again(member.id);
    }
}

void Membership::tell(const std::vector<Member>& news, NodeId except) {
    const bool all = members_.lowest() == routes_.id();
    const ByteBuffer message = encode(wire::control::Members{.members = news});
    for (const auto& [id, weak] : channels_)
        if (const auto channel = weak.lock(); channel && id != except && (all || members_.find(id)->let_in_here))
            channel->say(message);
}

}  // namespace rove::control
