// Access to the inside of a Node and a Peer, for the implementation of the public headers.
#pragma once

#include <memory>
#include <string_view>

#include "node/core.hpp"
#include "rove/rove.hpp"

namespace rove::detail {

struct Inside {
    static Node node(std::shared_ptr<NodeCore> core) { return Node(std::move(core)); }
    static const std::shared_ptr<NodeCore>& core(const Peer& peer) { return peer.core_; }
    static const std::shared_ptr<PeerState>& state(const Peer& peer) { return peer.state_; }
    // invalid: the node has no link to that one.
    static Result<Peer> peer(NodeCore& core, NodeId node) {
        ROVE_TRY(std::shared_ptr<PeerState> state, core.linked(node));
        return Peer(core.shared_from_this(), std::move(state));
    }
};

[[noreturn, gnu::noinline]] inline void throw_moved_from() {
    throw Error(ErrorCode::invalid, "this Node or Peer was moved from: use the one that it was moved to");
}
// The node of an object. Throws if the object was moved from. Inlined, as usable() is, because each call and each post asks.
[[gnu::always_inline]] inline NodeCore& present(NodeCore* core) {
    if (core == nullptr) throw_moved_from();
    return *core;
}
// The node for a call that is made now. Throws if it was shut down, if this process is a fork of the node's, or if the object was moved from.
inline NodeCore& usable(NodeCore* core) {
    if (!present(core).is_usable()) throw_error(core->why_unusable());
    return *core;
}
// The same of an engine; and of the one that has a peer's link.
[[gnu::always_inline]] inline Engine& usable(Engine& engine) {
    if (!engine.is_usable()) throw_error(engine.node().why_unusable());
    return engine;
}
[[gnu::always_inline]] inline Engine& usable(NodeCore* core, const PeerState* peer) {
    (void)present(core);
    return usable(*peer->engine);
}
// A call on its way out: the one place where what a program lets it spend becomes what the node obeys, and what travels with the call.
[[gnu::always_inline]] inline Outgoing outgoing_within(const Limits& limits, const Callee& callee,
                                                       const Pieces& payload, bool wants_reply,
                                                       Sending sending = Sending::cached) {
    return {callee, payload, {.wants_reply = wants_reply}, sending, deadline_of(limits.time_ns)};
}
inline rove_pending pending_of(Engine& engine, CallId id) {
    return {&engine, id.slot, id.generation};
}
// Calls one of the functions that are built into every node.
[[nodiscard]] rove_pending call_built_in(const Peer& peer, const FunctionId& id, std::string_view name,
                                         const Pieces& payload, Deadline deadline);

}  // namespace rove::detail
