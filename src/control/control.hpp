// Control: the control plane of a node. It listens, meets other processes, checks who they are, keeps the list of members, and notices when a
// peer ends. It has one thread, and no call passes through it. docs/meeting.md describes the meetings. Its parts have one job each:
//
//   ControlThread   the thread, on which conversations take turns
//   OwnCookie       the secret by which processes of one user know each other on TCP
//   OwnIdentity     what this node shows to members: address, key, cluster, certificate
//   Members         the list of members
//   Membership      what is done when members are met, lost, ended or named by others
//   Healing         meets members again that have no link
//   LinkWatch       links that were adopted, until they end
//   Meetings        meetings that this node opens; Opening: one attempt
//   Joining         how this node becomes a member
//   IdClaims        which process gets which id, and whether a process has the id that it claims
//   Reception       connections that arrive, until their opener is known; Arrival: a guest that asks to be admitted
//   Listener        the socket that accepts connections
//
// Each part uses parts above it. For a part below it is given functions: Membership calls Healing to meet members again, and Healing calls
// Meetings.
//
// Threads: connect() from any thread but the control thread; all else from the threads that start and end the node, one call at a time. The
// state of the parts belongs to the control thread while that runs.
//
// Invariants: once stop() has returned the thread has ended, no conversation exists, and nothing calls the Host any more. Functions that lead to
// a part made later are called from conversations only, and those begin when all parts are made.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "control/healing.hpp"
#include "control/host.hpp"
#include "control/id_claims.hpp"
#include "control/joining.hpp"
#include "control/link_watch.hpp"
#include "control/listener.hpp"
#include "control/meetings.hpp"
#include "control/membership.hpp"
#include "control/own_identity.hpp"
#include "control/reception.hpp"

namespace rove::control {

class Control {
public:
    // overloaded: no descriptors or threads are left for it.
    [[nodiscard]] static Result<std::unique_ptr<Control>> create(Host host);
    ~Control();
    Control(const Control&) = delete;

    // Listens; returns the address with its actual port, or "" for an empty one. Connections wait until accept().
    [[nodiscard]] Result<std::string> listen(const std::string& address);
    void accept();  // other processes are met once identity_known() is called
    void identity_known();
    // Becomes a member of the cluster of the node at the address, and meets all its nodes.
    [[nodiscard]] Status join(const std::string& address);
    // Meets the node at the address, or returns the existing link; a peer given as `old` gets the new link. Threads that ask for one node
    // at the same time share a meeting. From any thread but the control thread. cancelled: the node is ending.
    [[nodiscard]] Result<std::shared_ptr<PeerState>> connect(const std::string& address, std::shared_ptr<PeerState> old,
                                                             std::optional<TimePoint> deadline = std::nullopt);
    void stop_accepting();
    void stop();  // says goodbye, ends every connection and the thread

private:
    explicit Control(Host host);

    const Host host_;
    OwnCookie cookie_;
    std::set<Channel*> channels_;  // all open ones; the control thread's
    ControlThread thread_;

    // The parts. Conversations hold references to them; all of those are dropped before any part is destroyed (stop()).
    OwnIdentity self_;
    Members members_;
    Membership membership_;
    Healing healing_;
    LinkWatch links_;
    Meetings meetings_;
    Joining joining_;
    IdClaims ids_;
    Reception reception_;
    Listener listener_;
};

}  // namespace rove::control
