#include "control/membership.hpp"

#include <algorithm>

#include "base/log.hpp"

namespace rove::control {

using State = MemberEntry::State;
using Trust = MemberEntry::Trust;
using wire::control::Member;
using wire::control::Settled;
using wire::control::Welcome;

void Membership::i_am() {
    const Member me = self_.as_member();
    members_.set(me, State::living);
    ids_.set_identity(me.id, members_.count());
}

void Membership::begin_cluster() {
    self_.begin_cluster(ids_.id());
    i_am();
}

void Membership::let_in(const Welcome& welcome) {
    ids_.set_identity(welcome.you, welcome.count);
}

Status Membership::joined(const Welcome& welcome, const Settled& settled) {
    self_.join_cluster(settled.cluster, settled.certificate);
    if (settled.certificate.id != welcome.you || !self_.is_certified(self_.as_member()))
        return fail(ErrorCode::invalid, "it has let this node in as node {}, and gave no certificate for that",
                    welcome.you);
    if (welcome.you >= wire::control::kMembersMax)
        return fail(ErrorCode::invalid, "it has let this node in as node {}, and a cluster has {} members at most",
                    welcome.you, wire::control::kMembersMax);
    i_am();
    bool has_giver = false;
    for (const Member& member : settled.members) {
        if (member.id == ids_.id() || member.id >= wire::control::kMembersMax || !self_.is_certified(member)) continue;
        const bool gives = member.id == welcome.id && member.key == welcome.key;
        members_.set(member, State::lost, gives ? Trust::proven : Trust::told);
        has_giver |= gives;
    }
    ids_.set_node_count(members_.count());
    if (has_giver) return {};
    return fail(ErrorCode::invalid, "it let this node in, and has no certificate of its cluster itself");
}

Member Membership::certify(NodeId id) const {
    return self_.certify(members_.find(id)->as_member(id));
}

Trust Membership::admit(const Member& member) {
    const MemberEntry* entry = members_.find(member.id);
    const Trust before = entry != nullptr && entry->is_there() && entry->key == member.key ? entry->trust : Trust::none;
    members_.set(member, State::lost);
    ids_.set_node_count(members_.count());
    return before;
}

void Membership::met(NodeId id, const Peers::Adopted& adopted, const std::shared_ptr<Channel>& channel, Trust before,
                     bool joins) {
    MemberEntry* entry = members_.find(id);
    entry->state = State::living;
    entry->peer = adopted.peer;
    entry->meeting = adopted.meeting;
    channels_[id] = channel;
    tell_of(entry->as_member(id), before);
    if (!joins && (members_.lowest() == ids_.id() || members_.lowest() == id)) tell_all_members(id, *channel);
}

void Membership::tell_of(const Member& member, Trust before) {
    const NodeId lowest = members_.lowest();
    const ByteBuffer message = encode(wire::control::Members{.members = {member}});
    for (const auto& [id, weak] : channels_) {
        if (id == member.id) continue;
        const bool should_know = lowest == ids_.id() ? before != Trust::proven : id == lowest && before == Trust::none;
        if (const auto channel = weak.lock(); channel && should_know) channel->say(message);
    }
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
    if (left) return give_up(id, entry->key, "it left", true);
    meet_again(id);
}

void Membership::give_up(NodeId id, const wire::control::PublicKey& key, const std::string& why, bool said) {
    MemberEntry* entry = members_.find(id);
    if (entry == nullptr || !entry->is_there() || entry->key != key || id == ids_.id()) return;
    entry->state = State::gone;
    // Members can name others that were never met, without bound.
    const auto level = entry->trust == Trust::proven ? spdlog::level::info : spdlog::level::debug;
    if (!said) log().log(level, "{}: node {} at {} is gone: {}", name_(), id, entry->address, why);
    if (const std::shared_ptr<PeerState> peer = entry->peer.lock())
        engines_.lose(peer, entry->meeting, Error(ErrorCode::disconnected, why));
    engines_.member_gone(id, fmt::format("node {} at {} is gone: {}", id, entry->address, why));
    channels_.erase(id);
}

void Membership::expect(NodeId id) {
    const MemberEntry* entry = members_.find(id);
    engines_.member_expected(id, entry->key, fmt::format("node {} at {} has not been met yet", id, entry->address));
}

void Membership::meet_again(NodeId id) {
    expect(id);
    meet_again_(id);
}

void Membership::sought_by(const Member& member) {
    const MemberEntry* known = members_.find(member.id);
    const bool was_given_up = known != nullptr && known->state == State::gone && known->key == member.key;
    if (member.id == ids_.id() || !(was_given_up || members_.is_news(member)) || !self_.is_certified(member)) return;
    members_.learn(member);
    meet_again(member.id);
}

Status Membership::heard_of(const std::vector<Member>& members) {
    for (const Member& member : members) {
        if (member.id == ids_.id() || !members_.is_news(member)) continue;
        if (!self_.is_certified(member))
            return fail(ErrorCode::invalid, "it names node {} at {}, which has no certificate of this cluster",
                        member.id, member.address);
        members_.learn(member);
        meet_again(member.id);
    }
    return {};
}

}  // namespace rove::control
