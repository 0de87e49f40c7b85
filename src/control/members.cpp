#include "control/members.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

namespace rove::control {

using State = MemberEntry::State;
using Trust = MemberEntry::Trust;
using wire::control::kMembersMax;

namespace {

// Quarters of a second since 2026; they last until 2060. An id's generation grows with the clock. So a node that has only just begun to
// give ids, and knows nothing of earlier members, never gives a generation that is older than those that others remember.
std::uint32_t generation_by_clock() {
    using Quarters = std::chrono::duration<std::int64_t, std::ratio<1, 4>>;
    constexpr auto kBegin = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
    const auto since = std::chrono::duration_cast<Quarters>(std::chrono::system_clock::now() - kBegin).count();
    return static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(since, 0, std::numeric_limits<std::uint32_t>::max() / 2));
}

}  // namespace

MemberEntry* Members::find(NodeId id) {
    return id < entries_.size() && entries_[id].state != State::unused ? &entries_[id] : nullptr;
}

NodeId Members::at(std::string_view address) const {
    for (NodeId id = 0; id < entries_.size(); ++id)
        if ((entries_[id].is_there() || entries_[id].state == State::joining) && entries_[id].address == address)
            return id;
    return kNoNode;
}

NodeId Members::of(const std::shared_ptr<PeerState>& peer) const {
    for (NodeId id = 0; peer && id < entries_.size(); ++id)
        if (entries_[id].peer.lock() == peer) return id;
    return kNoNode;
}

NodeId Members::lowest() const {
    for (NodeId id = 0; id < entries_.size(); ++id)
        if (entries_[id].is_there() && entries_[id].trust == Trust::proven) return id;
    return kNoNode;
}

NodeId Members::give(const std::string& address, const wire::control::PublicKey& key, NodeId mine) {
    const auto search = [this, mine](auto&& fits) {
        for (NodeId id = 0; id < entries_.size(); ++id)
            if (id != mine && fits(entries_[id])) return id;
        return kNoNode;
    };
    const auto is_free = [](const MemberEntry& each) {
        return each.state == State::unused || each.state == State::gone;
    };
    NodeId id = search([&](const MemberEntry& each) { return each.state == State::gone && each.address == address; });
    if (id == kNoNode) id = search([&](const MemberEntry& each) { return is_free(each) && !each.had; });
    if (id == kNoNode && entries_.size() < kMembersMax) id = static_cast<NodeId>(entries_.size());
    if (id == kNoNode) id = search([](const MemberEntry& each) { return each.state == State::gone; });
    if (id == kNoNode) return id;
    MemberEntry& given = entry(id);
    given.former = std::make_shared<const wire::control::Member>(given.as_member(id));
    given.former_trust = given.trust;
    given.state = State::joining;
    if (given.address != address) given.peer.reset();
    given.set_process({.id = id,
                       .generation = std::max(given.generation + 1, generation_by_clock()),
                       .address = address,
                       .key = key,
                       .signature = {}});
    given.trust = Trust::none;
    return id;
}

void Members::take_back(NodeId id) {
    MemberEntry& given = entry(id);
    if (given.state != State::joining) return;
    given.set_process(*given.former);
    given.trust = given.former_trust;
    given.state = State::gone;
}

void Members::set(const wire::control::Member& member, State state, Trust trust) {
    MemberEntry& known = entry(member.id);
    known.state = state;
    known.set_process(member);
    known.former.reset();
    known.trust = trust;
    known.had = true;
    count_ = std::max(count_, member.id + 1);
}

bool Members::is_news(const wire::control::Member& member) {
    if (member.id >= ids_end()) return false;
    const MemberEntry* known = find(member.id);
    return known == nullptr || (known->state == State::gone && known->generation < member.generation);
}

void Members::learn(const wire::control::Member& member) {
    MemberEntry& news = entry(member.id);
    news.state = State::lost;
    news.set_process(member);
    news.trust = Trust::told;
    news.had = true;
}

std::vector<wire::control::Member> Members::list(NodeId except) const {
    std::vector<wire::control::Member> members;
    for (NodeId id = 0; id < std::min<std::size_t>(entries_.size(), kMembersMax); ++id)
        if (id != except && entries_[id].is_there()) members.push_back(entries_[id].as_member(id));
    return members;
}

MemberEntry& Members::entry(NodeId id) {
    if (entries_.size() <= id) entries_.resize(id + 1);
    return entries_[id];
}

}  // namespace rove::control
