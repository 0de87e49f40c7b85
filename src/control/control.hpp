// Control: the control plane of a node. It listens, meets other processes, checks who they are, keeps the list of members, and notices when a
// peer ends. It has one thread, and no call passes through it. docs/meeting.md describes the meetings. Its parts have one job each:
//
//   ControlThread   the thread, on which conversations take turns
//   OwnCookie       the secret by which processes of one user know each other on TCP
//   OwnIdentity     what this node shows to members: address, key, cluster, certificate
//   Members         the list of members
//   Membership      what is done when members are met, lost, gone or named by others
//   Healing         meets members again that have no link
//   LinkWatch       links that were adopted, until they end
//   Meetings        meetings that this node opens; Opening: one attempt
//   Joining         how this node becomes a member
//   IdClaims        who gets which id, and who has the id that it names
//   Reception       connections that arrive, until it is known who has opened them; Arrival: a guest that asks to be let in
//   Listener        where connections arrive
//
// Each part uses parts above it. What it needs of one below is a function that it is given: Membership has Healing meet members again, and
// Healing has Meetings do so.
//
// Threads: connect() from any thread but the control thread; all else from the threads that start and end the node, one call at a time. What
// the parts hold belongs to the control thread while that runs.
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
    // overloaded: no descriptors or threads left for it.
    [[nodiscard]] static Result<std::unique_ptr<Control>> create(Host host);
    ~Control();
    Control(const Control&) = delete;

    // Listens; gives the address with its real port, or "" for an empty one. Whoever connects waits until accept().
    [[nodiscard]] Result<std::string> listen(const std::string& address);
    void accept();  // others are met once identity_known() is called
    void identity_known();
    // Becomes a member of the nodes of which one is at the address, and meets all of them.
    [[nodiscard]] Status join(const std::string& address);
    // Meets the node at the address, or gives the link that there is; a peer given as `old` is brought back to life. Threads that
    // ask for one node at once share a meeting. From any thread but the control thread. cancelled: the node is ending.
    [[nodiscard]] Result<std::shared_ptr<PeerState>> connect(const std::string& address, std::shared_ptr<PeerState> old,
                                                             std::optional<TimePoint> deadline = std::nullopt);
    void stop_accepting();
    void stop();  // says goodbye, ends every connection and the thread

private:
    explicit Control(Host host);

    const Host host_;
    OwnCookie cookie_;
    std::set<Channel*> channels_;  // all that are open; the control thread's
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
