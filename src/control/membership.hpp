// Membership: how this node becomes a member, and what it does when other members are met, are lost, have ended or are named to it: it
// updates the list of members, and informs the engine and those members that must know.
//
// The member with the lowest id informs all others of each member that it meets. Every other one informs the lowest of each member that it
// meets and did not know. When one of these two has a new link to the other, each sends the other all that it knows. So all learn of all,
// also if some were stopped while the others were replaced, with one message to each for one that joins.
//
// Threads: the control thread's.
//
// Invariant: `channels_` has no member that is known to have ended.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/channel.hpp"
#include "control/host.hpp"
#include "control/members.hpp"
#include "control/own_identity.hpp"

namespace rove::control {

class Membership {
public:
    // The other parts of the control plane that it uses. They outlive it.
    struct Beside {
        OwnIdentity& self;
        Members& members;
        NodeIds& ids;
        Engines& engines;
        std::function<std::string()> name;       // this node's name, for messages
        std::function<void(NodeId)> meet_again;  // meets a member that has no link
    };
    explicit Membership(Beside beside)
        : self_(beside.self),
          members_(beside.members),
          ids_(beside.ids),
          engines_(beside.engines),
          name_(std::move(beside.name)),
          meet_again_(std::move(beside.meet_again)) {}
    Membership(const Membership&) = delete;

    // ---- this node
    // This node is the first one of a new cluster, with the id that it has.
    void begin_cluster();
    // This node was admitted, and its lane is open: from here on others may connect to it.
    void let_in(const wire::control::Welcome& welcome);
    // The node that has sent both has admitted this one. invalid: it gave no certificate for this node, or has none itself.
    [[nodiscard]] Status joined(const wire::control::Welcome& welcome, const wire::control::Settled& settled);

    // ---- other members
    // The cluster's certificate that the process which joins here has the id, given by Members::give().
    [[nodiscard]] wire::control::Member certify(NodeId id) const;
    // The member has proven its key, and its certificate was checked. Returns how that process was known before; none: it had ended.
    MemberEntry::Trust admit(const wire::control::Member& member);
    // There is a link to it. `before`: the result of admit(). joins: by that meeting one of the two joins, and the one that admits it names
    // all members to it.
    void met(NodeId id, const Peers::Adopted& adopted, const std::shared_ptr<Channel>& channel,
             MemberEntry::Trust before, bool joins);
    // The link of that meeting has ended. Does nothing if the member was met again since.
    void went(NodeId id, std::uint64_t meeting, bool left);
    // `said`: the log has the reason already, or will have it from the end of its link.
    void give_up(NodeId id, const wire::control::PublicKey& key, const std::string& why, bool said = false);
    // It has no link, and is about to be met: until then the engine keeps the replies to it.
    void expect(NodeId id);
    // A process that claims to be a member has looked for the process that was here before this one. It is met if it has a certificate,
    // even if this node considered it ended.
    void sought_by(const wire::control::Member& member);
    // A member names others. invalid: one of them has no certificate of this cluster.
    [[nodiscard]] Status heard_of(const std::vector<wire::control::Member>& members);

private:
    void i_am();
    void tell_of(const wire::control::Member& member, MemberEntry::Trust before);
    void tell_all_members(NodeId to, Channel& channel);
    void meet_again(NodeId id);

    OwnIdentity& self_;
    Members& members_;
    NodeIds& ids_;
    Engines& engines_;
    const std::function<std::string()> name_;
    const std::function<void(NodeId)> meet_again_;
    std::map<NodeId, std::weak_ptr<Channel>> channels_;
};

}  // namespace rove::control
