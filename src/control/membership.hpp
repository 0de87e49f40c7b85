// Membership: how this node becomes a member, and what it does when other members are met, are lost, are gone or are named to it: the list
// of members is kept true, the engine is told, and so are those members that have to know.
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
#include "control/members.hpp"
#include "control/own_identity.hpp"
#include "engine/peers.hpp"
#include "peer/routes.hpp"

namespace rove::control {

class Membership {
public:
    // What a control plane has beside it, which outlives it.
    struct Beside {
        OwnIdentity& self;
        Members& members;
        Routes& routes;
        Peers& peers;
        std::function<std::string()> name;       // of this node, for messages
        std::function<void(NodeId)> meet_again;  // a member that has no link
    };
    explicit Membership(Beside beside)
        : self_(beside.self),
          members_(beside.members),
          routes_(beside.routes),
          peers_(beside.peers),
          name_(std::move(beside.name)),
          meet_again_(std::move(beside.meet_again)) {}
    Membership(const Membership&) = delete;

    // ---- this node
    // It is the first one of a new cluster, by the id that it has.
    void begin_cluster();
    // It was let in, and its lane is open: from here on others may come and ask for it.
    void is_joining(const wire::control::Welcome& welcome);
    // The node at that address, which has sent the welcome, has given the certificate.
    void has_joined(const wire::control::Welcome& welcome, const wire::control::Certificate& certificate,
                    const std::string& address);

    // ---- whose word about ids counts
    // For the id that this node has given to a process.
    [[nodiscard]] wire::control::Certificate certify(NodeId id) const;
    // In certificates and in lists: that of the member with the lowest id, which gives them, and of the one by which this node has
    // its own; not that of one that has gone, nor of one that was only told of.
    [[nodiscard]] bool gives_ids(NodeId id) const;

    // ---- other members
    void is_here(NodeId id, const Peers::Adopted& adopted, const std::shared_ptr<Channel>& channel);
    // The link of that meeting has ended. Nothing happens where the member was met again since.
    void went(NodeId id, std::uint64_t meeting, bool left);
    // `said`: the log has it, or will, from the end of its link.
    void is_gone(NodeId id, const wire::control::PublicKey& key, const std::string& why, bool said = false);
    // It has no link, and is about to be met: until then the engine keeps the replies to it.
    void is_expected(NodeId id);
    // What the member `from` says of others.
    void heard_of(const std::vector<wire::control::Member>& members, NodeId from);
    // Tells linked members about members that this node has met. The node that gives ids tells all of them. Any other node tells those that
    // it let in itself, which believe it: it may not have met all members by then, and has named to them only those that it had met.
    void tell(const std::vector<wire::control::Member>& news, NodeId except);

private:
    void i_am(NodeId id, std::uint32_t generation);
    void tell_all_members(NodeId to, Channel& channel);
    void meet_again(NodeId id);

    OwnIdentity& self_;
    Members& members_;
    Routes& routes_;
    Peers& peers_;
    const std::function<std::string()> name_;
    const std::function<void(NodeId)> meet_again_;
    std::map<NodeId, std::weak_ptr<Channel>> channels_;
};

}  // namespace rove::control
