#include "node/engine_choice.hpp"

#include <algorithm>

namespace rove {

Engine& EngineChoice::with_fewest_peers() const {
    return **std::ranges::min_element(engines_, {}, [this](const std::unique_ptr<Engine>& each) {
        const auto meetings = meetings_.find(&each->peers());
        return each->peers().count() + (meetings != meetings_.end() ? meetings->second : 0);
    });
}

// A member keeps its engine from the first meeting on that knows its id, also where that fails. Two meetings with it may be under way at once,
// one from each side, so to choose for each meeting would make links of two engines.
control::ChosenEngine EngineChoice::choose(const PeerState* old, NodeId member) {
    Engine* chosen = old != nullptr ? old->engine : nullptr;
    const auto known = of_members_.find(member);
    if (chosen == nullptr && known != of_members_.end()) chosen = known->second;
    if (chosen == nullptr) chosen = &with_fewest_peers();
    if (member != kNoNode) of_members_.try_emplace(member, chosen);
    ++meetings_[&chosen->peers()];
    return {.fabric = &chosen->fabric(), .peers = &chosen->peers()};
}

Result<Peers::Adopted> EngineChoice::adopt(const control::ChosenEngine& by, Meeting meeting,
                                           std::unique_ptr<fabric::Link>& link, std::shared_ptr<PeerState> old) {
    // Read before it is asked whether there is a link: 0 would be no meeting.
    const std::uint64_t met = old ? old->meeting() : 0;
    if (met != 0 && &old->engine->peers() != by.peers && !meeting.replace && linked(*old))
        return Peers::Adopted{old, met, false};
    // Who joins learns only by the meeting whom it has met.
    if (meeting.peer.member && !is_engine_of(meeting.peer.id, *by.peers))
        return fail(ErrorCode::overloaded, "node {} has met another engine of this node since then; try again",
                    meeting.peer.id);
    return by.peers->adopt(std::move(meeting), std::move(link), std::move(old));
}

bool EngineChoice::is_engine_of(NodeId member, const Peers& peers) {
    const auto engine = std::ranges::find(engines_, &peers, [](const auto& each) { return &each->peers(); });
    return &of_members_.try_emplace(member, engine->get()).first->second->peers() == &peers;
}

bool EngineChoice::linked(const PeerState& peer) const {
    return peer.engine->peers().linked(peer);
}

void EngineChoice::lose(const std::shared_ptr<PeerState>& peer, std::uint64_t meeting, Error why) {
    peer->engine->peers().lose(peer, meeting, std::move(why));
}

Engine& EngineChoice::engine_of(NodeId member) const {
    const auto known = of_members_.find(member);
    return known != of_members_.end() ? *known->second : *engines_.front();
}

void EngineChoice::member_expected(NodeId member, const AbsentMembers::Process& process, const std::string& why) {
    engine_of(member).peers().member_expected(member, process, why);
}

void EngineChoice::member_gone(NodeId member, const std::string& why) {
    engine_of(member).peers().member_gone(member, why);
}

}  // namespace rove
