// Routes: to which of an engine's peers a frame for a node is sent. Peers of the node's other engines are not among them, because their states
// are under another lock: with_way() says which engine has such a one.
//
// A frame names a node in one of three ways: a member by its dense id, a client by the id that its home node gave it, and a node of which
// this one is a client by a name that only this node uses (`foreign`), because that node's dense id may be a member's here as well.
//
// Threads: under the engine's lock, but for what is the whole node's (NodeIds), which any thread may ask.
//
// Invariant: each peer that is entered has a link, and is found under exactly one name, PeerState::back.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"
#include "lead/engine_lock.hpp"
#include "peer/between_engines.hpp"
#include "peer/node_ids.hpp"

namespace rove {

class PeerState;
struct PeerIdentity;
namespace wire {
struct FrameHeader;
}

class Routes {
public:
    Routes(NodeIds& node, const OtherEngines& others) : node_(node), others_(others) {}

    // ---- of the whole node
    [[nodiscard]] NodeId id() const { return node_.id(); }
    [[nodiscard]] std::uint32_t node_count() const { return node_.node_count(); }

    // ---- of the engine

    // The name by which this node addresses a peer that it has just met: its id, or a foreign name, which the peer keeps if it has one.
    // `former`: its name so far (PeerState::back), kNoNode for a new peer.
    [[nodiscard]] NodeId name_for(const PeerIdentity& met, NodeId former) REQUIRES(lock_of<EngineLock>);
    // Frames for its name are sent to the peer from now on. Throws std::bad_alloc; then leave() is to be called.
    void enter(PeerState& peer) REQUIRES(lock_of<EngineLock>);
    // Reverses enter(). Needs no memory; does nothing for a peer that is not entered.
    void leave(const PeerState& peer) REQUIRES(lock_of<EngineLock>);

    // The peer with that name, or the home of that client. Null: there is no link to it. Borrowed until the peer leaves.
    [[nodiscard]] PeerState* to(NodeId node) const REQUIRES(lock_of<EngineLock>);
    // By a dense id; null: it has no link, or is this node.
    [[nodiscard]] PeerState* member(NodeId id) const REQUIRES(lock_of<EngineLock>) {
        return id < members_.size() ? members_[id] : nullptr;
    }
    // Of those of other clusters that were met at that address, the one whose link can be used and that was met last. Where no link can be used,
    // the one that was met last; null: none was met there.
    [[nodiscard]] PeerState* foreign_at(std::string_view address) const REQUIRES(lock_of<EngineLock>);
    // By dense id, null where there is no link.
    [[nodiscard]] std::span<PeerState* const> members() const REQUIRES(lock_of<EngineLock>) { return members_; }
    // Of any engine of this node.
    [[nodiscard]] bool has_client(NodeId client) const REQUIRES(lock_of<EngineLock>) {
        return clients_.contains(client) || others_.with_link(client);
    }
    // Whether a frame that the peer has sent is for another node, to which this one sends it on: see wire::Routed.
    [[nodiscard]] bool sends_on(const PeerState& from, const wire::FrameHeader& header) const
        REQUIRES(lock_of<EngineLock>);
    // Another engine of this node, which has a link over which frames for that node are sent.
    [[nodiscard]] std::optional<unsigned> with_way(NodeId node) const { return others_.with_link(way_to(node)); }
    // A client whose home this node is.
    [[nodiscard]] bool is_home_of(NodeId node) const { return home_of(node) == id(); }

private:
    // The name of the peer to which frames for that node are sent.
    [[nodiscard]] NodeId way_to(NodeId node) const;
    void forget_last() REQUIRES(lock_of<EngineLock>);
    void leave_address(const PeerState& peer) REQUIRES(lock_of<EngineLock>);

    NodeIds& node_;
    const OtherEngines& others_;
    std::vector<PeerState*> members_ GUARDED_BY(lock_of<EngineLock>);
    std::unordered_map<NodeId, PeerState*> clients_ GUARDED_BY(lock_of<EngineLock>);  // of this node
    std::unordered_map<NodeId, PeerState*> foreign_ GUARDED_BY(lock_of<EngineLock>);
    // By their addresses, of which several may have the same; those in the order in which they were met.
    std::multimap<std::string, PeerState*, std::less<>> foreign_at_ GUARDED_BY(lock_of<EngineLock>);
    // The client that to() found last: most replies are sent to one client after the other.
    mutable PeerState* routed_ GUARDED_BY(lock_of<EngineLock>) = nullptr;
    mutable NodeId routed_id_ GUARDED_BY(lock_of<EngineLock>) = kNoNode;
};

}  // namespace rove
