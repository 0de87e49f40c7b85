// EngineChoice: which of a node's engines has the link to which peer. The control plane asks it at each meeting.
//
// Threads and invariants: as control::Engines says. It has no lock of its own. A member's engine is chosen once, and kept also where its
// meeting fails.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "control/host.hpp"
#include "engine/engine.hpp"

namespace rove {

class EngineChoice final : public control::Engines {
public:
    // They outlive it.
    explicit EngineChoice(std::span<const std::unique_ptr<Engine>> engines) : engines_(engines) {}

    [[nodiscard]] control::ChosenEngine choose(const PeerState* old, NodeId member) override;
    void release(const control::ChosenEngine& chosen) noexcept override { --meetings_.find(chosen.peers)->second; }
    [[nodiscard]] Result<Peers::Adopted> adopt(const control::ChosenEngine& by, Meeting meeting,
                                               std::unique_ptr<fabric::Link>& link,
                                               std::shared_ptr<PeerState> old) override;
    [[nodiscard]] bool linked(const PeerState& peer) const override;
    void lose(const std::shared_ptr<PeerState>& peer, std::uint64_t meeting, Error why) override;
    void member_expected(NodeId member, const AbsentMembers::Process& process, const std::string& why) override;
    void member_gone(NodeId member, const std::string& why) override;

private:
    [[nodiscard]] Engine& with_fewest_peers() const EXCLUDES(lock_of<EngineLock>);
    // Whether that engine has the links to that member; if none has any yet, it has from here on.
    [[nodiscard]] bool is_engine_of(NodeId member, const Peers& peers);
    // The member's engine; the first one, where it has none yet.
    [[nodiscard]] Engine& engine_of(NodeId member) const;

    const std::span<const std::unique_ptr<Engine>> engines_;
    std::map<const Peers*, std::size_t> meetings_;  // that have chosen the engine with these peers, and are under way
    std::map<NodeId, Engine*> of_members_;          // at most one for each id that a member has had
};

}  // namespace rove
