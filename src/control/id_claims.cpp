#include "control/id_claims.hpp"

#include "control/co_try.hpp"

namespace rove::control {

using State = MemberEntry::State;
using wire::control::Request;
using wire::control::Role;

const MemberEntry* IdClaims::giver() const {
    const NodeId first = members_.lowest();
    return first != routes_.id() && first != kNoNode ? members_.find(first) : nullptr;
}

// Only one process can listen at an address. So a node that names the address of a known member either lies, or has taken the place of a
// member that is dead: asking at that address tells which.
asio::awaitable<Result<NodeId>> IdClaims::give(const Request& request) {
    if (request.address == self_.address())
        co_return fail(ErrorCode::invalid, "it says that it listens at {}, where this node does", self_.address());
    if (const NodeId former = members_.at(request.address); former != kNoNode) {
        if (members_.find(former)->state == State::joining)
            co_return fail(ErrorCode::overloaded, "another process is joining from {}; try again", request.address);
        const wire::control::PublicKey key = members_.find(former)->key;
        const Status there = co_await meet_member_(former, members_.find(former)->state == State::living);
        const MemberEntry* entry = members_.find(former);
        if (entry->is_there() && entry->key == key)
            co_return fail(ErrorCode::refused, "node {} at {} lives{}", former, request.address,
                           there ? "" : ", or does not answer: " + there.error().message());
    }
    const NodeId id = members_.give(request.address, request.key, routes_.id());
    if (id == kNoNode)
        co_return fail(ErrorCode::overloaded, "{} nodes are members, the most there may be", kNodeIdMax + 1);
    co_return id;
}

// Of two members that open a meeting to each other at once the lower id's goes on: that node refuses the other's, and waits for none
// itself; the other one lets it in. So there is one link whichever way their messages cross, because one node alone decides.
asio::awaitable<Result<IdClaims::OfMember>> IdClaims::of_member(const Request& request) {
    const NodeId id = request.certificate.id;
    if (id == routes_.id()) co_return fail(ErrorCode::refused, "it says that it is node {}, which this node is", id);
    const MemberEntry* entry = members_.find(id);
    const bool known = entry != nullptr && entry->is_known_as(request.key, request.address);
    if (!known) {
        ROVE_CO_CHECK(co_await check_certificate(request));
        entry = members_.find(id);
    }
    const std::shared_ptr<PeerState> peer = entry != nullptr ? entry->peer.lock() : nullptr;
    const bool linked = known && peer && peers_.linked(*peer) && !request.replace;
    co_return OfMember{.id = id, .is_linked = linked || (is_opening_(id) && routes_.id() < id)};
}

// Of a process that is not known by that key at that address.
asio::awaitable<Status> IdClaims::check_certificate(const Request& request) {
    const NodeId id = request.certificate.id;
    if (id >= members_.count() + kIdsAheadMax)
        co_return fail(ErrorCode::refused, "it says that it is node {}, where {} are known; try again when more are",
                       id, members_.count());
    const NodeId issuer_id = request.certificate.issuer;
    const MemberEntry* issuer = members_.find(issuer_id);
    const ByteBuffer statement = wire::control::statement(request.certificate, request.address, request.key);
    if (request.certificate.cluster != self_.cluster() || issuer == nullptr ||
        !signed_by(issuer->key, statement, request.certificate.signature) ||
        !(members_.gave_ids(issuer_id, request.certificate.generation) || co_await gives_ids_now(issuer_id)))
        co_return fail(ErrorCode::refused,
                       "it says that it is node {} of this cluster, and no member that gives ids says so", id);
    const MemberEntry* entry = members_.find(id);
    if (entry != nullptr && entry->is_there()) {  // the process before it may be dead, and that not noticed yet
        const wire::control::PublicKey former = entry->key;
        (void)co_await meet_member_(id, entry->state == State::living);
        entry = members_.find(id);
        if (entry != nullptr && entry->is_there() && entry->key == former)
            co_return fail(ErrorCode::refused, "it says that it is node {}, and another process that is lives", id);
    }
    if (entry != nullptr && entry->generation > request.certificate.generation)
        co_return fail(ErrorCode::refused, "node {} is another process by now", id);
    co_return Status();
}

// Membership::gives_ids(), where those with lower ids may have died and this node did not notice yet: asks them.
asio::awaitable<bool> IdClaims::gives_ids_now(NodeId id) {
    for (NodeId lowest = members_.lowest(); !membership_.gives_ids(id); lowest = members_.lowest()) {
        const MemberEntry* entry = members_.find(id);
        if (entry == nullptr || !entry->is_there() || lowest >= id || lowest == routes_.id()) co_return false;
        (void)co_await meet_member_(lowest, members_.find(lowest)->state == State::living);
        if (members_.lowest() == lowest) co_return false;
    }
    co_return true;
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
