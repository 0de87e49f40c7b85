// Membership: how this node becomes a member, and what it does when other members are met, are lost, are gone or are named to it: the list
// of members is kept true, the engine is told, and so are those members that have to know.
//
// Who tells whom: the member with the lowest id tells all others of each member that it meets. Every other one tells the lowest of each that
// it meets and had not heard of. When one of these two has a new link to the other, each tells the other all that it knows. So all hear of
// all, also where some were stopped while the others were replaced, with one message to each for one that joins.
//
// Threads: the control thread's.
//
// Invariant: `channels_` has no member that is known to be gone.
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
        std::function<std::string()> name;       // of this node, for messages
        std::function<void(NodeId)> meet_again;  // a member that has no link
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
    // It is the first one of a new cluster, by the id that it has.
    void begin_cluster();
    // It was let in, and its lane is open: from here on others may come and ask for it.
    void let_in(const wire::control::Welcome& welcome);
    // The node that has sent both has let it in. invalid: it gave no certificate for this node, or has none itself.
    [[nodiscard]] Status joined(const wire::control::Welcome& welcome, const wire::control::Settled& settled);

    // ---- other members
    // The cluster's word that the process which joins here has the id: Members::give() has given it.
    [[nodiscard]] wire::control::Member certify(NodeId id) const;
    // The member has proven its key, and its certificate was checked. Returns what was known of that process before; none: it was gone.
    MemberEntry::Trust admit(const wire::control::Member& member);
    // There is a link to it. `before`: what admit() has returned. joins: by that meeting one of the two joins, and the one that lets it in
    // names all members to it.
    void met(NodeId id, const Peers::Adopted& adopted, const std::shared_ptr<Channel>& channel,
             MemberEntry::Trust before, bool joins);
    // The link of that meeting has ended. Nothing happens where the member was met again since.
    void went(NodeId id, std::uint64_t meeting, bool left);
    // `said`: the log has it, or will, from the end of its link.
    void give_up(NodeId id, const wire::control::PublicKey& key, const std::string& why, bool said = false);
    // It has no link, and is about to be met: until then the engine keeps the replies to it.
    void expect(NodeId id);
    // A process came that is a member by its own word, and looked for the process that was here before this one. It is met if it has a
    // certificate, also where this node has given it up.
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
