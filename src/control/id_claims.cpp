#include "control/id_claims.hpp"

#include "control/co_try.hpp"

namespace rove::control {

using State = MemberEntry::State;
using wire::control::Member;
using wire::control::Request;
using wire::control::Role;

const MemberEntry* IdClaims::giver() const {
    const NodeId first = members_.lowest();
    return first != ids_.id() && first != kNoNode ? members_.find(first) : nullptr;
}

// Only one process can listen at an address. So a node that names the address of a known member either lies, or has replaced a member that
// has ended: connecting to that address shows which.
asio::awaitable<Result<NodeId>> IdClaims::give(const Request& request) {
    if (request.address == self_.address())
        co_return fail(ErrorCode::invalid, "it says that it listens at {}, where this node does", self_.address());
    if (const NodeId former = members_.at(request.address); former != kNoNode) {
        if (members_.find(former)->state == State::joining)
            co_return fail(ErrorCode::overloaded, "another process is joining from {}; try again", request.address);
        const Status there = co_await meet_member_(former, members_.find(former)->state == State::living);
        const MemberEntry* entry = members_.find(former);
        if (entry->is_there())
            co_return fail(ErrorCode::refused, "node {} at {} lives{}", former, request.address,
                           there ? "" : ", or does not answer: " + there.error().message());
    }
    const NodeId id = members_.give(request.address, request.key, ids_.id());
    if (id == kNoNode)
        co_return fail(ErrorCode::overloaded,
                       "{} nodes are members, the most that a cluster has; try again when one has left, or be a client",
                       wire::control::kMembersMax);
    co_return id;
}

// If two members open a meeting to each other at the same time, the one of the lower id continues: that node refuses the other's, and waits
// for none itself; the other one accepts it. So there is one link whichever way their messages cross, because one node alone decides.
asio::awaitable<Result<IdClaims::OfMember>> IdClaims::of_member(const Request& request) {
    const Member claimed = member_of(request);
    const NodeId id = claimed.id;
    if (id == ids_.id()) co_return fail(ErrorCode::refused, "it says that it is node {}, which this node is", id);
    if (id >= members_.ids_end())
        co_return fail(ErrorCode::refused, "it says that it is node {}, where {} are known; try again when more are",
                       id, members_.count());
    if (!self_.is_certified(claimed))
        co_return fail(ErrorCode::refused, "it says that it is node {}, and has no certificate of this cluster", id);
    const auto is_known = [&] {
        const MemberEntry* entry = members_.find(id);
        return entry != nullptr && entry->is_known_as(claimed.key);
    };
    if (!is_known()) ROVE_CO_CHECK(co_await await_end_of_former(claimed));
    if (!is_known()) co_return OfMember{.id = id};
    const std::shared_ptr<PeerState> peer = members_.find(id)->peer.lock();
    const bool linked = peer && engines_.linked(*peer) && !request.replace;
    co_return OfMember{.id = id, .is_linked = linked || (is_opening_(id) && ids_.id() < id)};
}

// The former holder may have ended unnoticed, so this node connects to its address.
asio::awaitable<Status> IdClaims::await_end_of_former(const Member& claimed) {
    const MemberEntry* entry = members_.find(claimed.id);
    if (entry != nullptr && entry->is_there() && entry->key != claimed.key) {
        (void)co_await meet_member_(claimed.id, entry->state == State::living);
        if (entry->is_there() && entry->key != claimed.key)
            co_return fail(ErrorCode::refused, "it says that it is node {}, and another process that is lives",
                           claimed.id);
    }
    if (entry != nullptr && entry->generation > claimed.generation)
        co_return fail(ErrorCode::refused, "node {} is another process by now", claimed.id);
    co_return Status();
}

Status IdClaims::check_is_free(NodeId id, Role role, const Request& request) const {
    const MemberEntry* entry = members_.find(id);
    const bool mine = entry != nullptr && entry->key == request.key;
    const bool is_free = role == Role::join
                             ? mine && entry->state == State::joining
                             : entry == nullptr || mine ||
                                   (entry->state == State::gone && entry->generation <= request.certificate.generation);
    if (is_free) return {};
    return fail(ErrorCode::refused, "node {} became another process while this one was met", id);
}

}  // namespace rove::control
