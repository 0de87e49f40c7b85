// IdClaims: which id a process gets that joins at this node, and whether a process that claims to be a member has the id that it claims.
//
// Threads: the control thread's.
//
// Invariant: no process gets an id whose holder is alive: the holder's address is checked first.
#pragma once

#include <asio/awaitable.hpp>
#include <functional>

#include "base/result.hpp"
#include "control/host.hpp"
#include "control/members.hpp"
#include "control/own_identity.hpp"

namespace rove::control {

class IdClaims {
public:
    // The other parts of the control plane that it uses. They outlive it.
    struct Beside {
        const OwnIdentity& self;
        Members& members;
        const NodeIds& ids;
        const Engines& engines;
        std::function<asio::awaitable<Status>(NodeId, bool probe)> meet_member;
        std::function<bool(NodeId)> is_opening;  // whether this node is opening a meeting with that member
    };
    explicit IdClaims(Beside beside)
        : self_(beside.self),
          members_(beside.members),
          ids_(beside.ids),
          engines_(beside.engines),
          meet_member_(std::move(beside.meet_member)),
          is_opening_(std::move(beside.is_opening)) {}
    IdClaims(const IdClaims&) = delete;

    // The member that gives ids; null: this node gives them.
    [[nodiscard]] const MemberEntry* giver() const;
    // An id for a node that joins here: its entry is then `joining`. refused: the id's holder lives.
    [[nodiscard]] asio::awaitable<Result<NodeId>> give(const wire::control::Request& request);
    // Whether the process is the member that it claims to be. Its key was proven. refused: it is not.
    struct OfMember {
        NodeId id = kNoNode;
        bool is_linked =
            false;  // it has a link with this node, or this node's meeting with it continues instead of its own
    };
    [[nodiscard]] asio::awaitable<Result<OfMember>> of_member(const wire::control::Request& request);
    // Whether it may still have the id, after changes by others during its meeting.
    [[nodiscard]] Status check_is_free(NodeId id, wire::control::Role role,
                                       const wire::control::Request& request) const;

private:
    [[nodiscard]] asio::awaitable<Status> await_end_of_former(const wire::control::Member& claimed);

    const OwnIdentity& self_;
    Members& members_;
    const NodeIds& ids_;
    const Engines& engines_;
    const std::function<asio::awaitable<Status>(NodeId, bool)> meet_member_;
    const std::function<bool(NodeId)> is_opening_;
};

}  // namespace rove::control
