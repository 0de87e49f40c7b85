// A function of this program, as the templates of rove/detail/offload.hpp have enrolled it, and the way to its package.
#pragma once

#include <memory>
#include <string>

#include "base/made_once.hpp"
#include "node/core.hpp"
#include "node/residents.hpp"
#include "rove/rove.hpp"

namespace rove::detail {

struct Callable {
    FunctionId resident;
    std::string name;
    std::string key;  // by which the program's own packages name it: see package/bundle.hpp
    std::uint32_t schema = 0;

    struct Code {
        FunctionId shipped;
        std::shared_ptr<PackageStore> package;  // null: it does not travel …
        std::string why_not;                    // … because
    };
    mutable MadeOnce<const Code> code;  // looked for at the first call
};

// Access to what a Node and a Peer are.
struct Edge {
    static Node node(std::shared_ptr<NodeCore> core) { return Node(std::move(core)); }
    static const std::shared_ptr<NodeCore>& core(const Peer& peer) { return peer.core_; }
    static const std::shared_ptr<PeerState>& state(const Peer& peer) { return peer.state_; }
    // invalid: the node has no link to that one.
    static Result<Peer> peer(NodeCore& core, NodeId node) {
        ROVE_TRY(std::shared_ptr<PeerState> state, core.linked(node));
        return Peer(core.shared_from_this(), std::move(state));
    }
};

[[nodiscard]] const Callable* callable_of(code::EntryPoint code);         // null: none of this program's
[[nodiscard]] const Resident* resident_of_entry(std::string_view entry);  // by the name it has in packages; null: none
// Reads what says which code this program's functions have, so that no call waits for it.
void read_own_code();
// Of a package of one function: in which forms it has that, as a number. 0: it has several, whose ids differ by what is beside them.
[[nodiscard]] std::uint32_t forms_of_one(const PackageStore& package);
// A function of this program runs in place of the caller's: says so once, where both are alone in packages of the same forms and differ.
// Others cannot be compared.
void say_if_other_code(const Resident& own, const wire::Either& callers, const std::string& node);
// Adds what is known of the code that travels, and gives that; looks for it the first time. overloaded: that cannot be done now.
[[nodiscard]] Result<const Callable::Code*> complete(NodeCore::Callee& callee, const Callable& callable);

// The node of a call that is made now. Throws where it was shut down, or is the process's that this one is a fork of.
inline NodeCore& usable(NodeCore& core) {
    if (!core.is_usable()) throw_error(core.why_unusable());
    return core;
}
inline rove_pending pending_of(NodeCore& core, CallTable::Id id) {
    return {&core, id.slot, id.generation};
}
// A call of what is built into every node.
[[nodiscard]] rove_pending call_built_in(const Peer& peer, const FunctionId& id, std::string_view name,
                                         const Pieces& payload, Deadline deadline);

}  // namespace rove::detail
