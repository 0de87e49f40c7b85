// What a running function may ask of its node beyond an answer: calls of its own, objects, time.
#include "node/begun_call.hpp"
#include "node/core.hpp"
#include "node/offload.hpp"
#include "node/residents.hpp"

namespace rove {

Result<CallTable::Id> NodeCore::call_from_here(NodeId to, code::EntryPoint function, const Pieces& payload,
                                               bool wants_reply, Deadline deadline) {
    Callee callee{.id = nullptr};
    FunctionId id;
    std::shared_ptr<PackageStore> package;
    std::string name;
    if (const Resident* own = Residents::find(function)) {
        callee = {.id = &own->id, .name = own->name, .own = true, .schema = own->schema};
        if (to == this->id()) {
            Hold hold(*this);
            ROVE_TRY(const code::Function* known, cache_->add_resident(own->id, own->name, own->entry));
            (void)known;
        } else if (const detail::Callable* callable = detail::callable_of(function)) {
            ROVE_CHECK(detail::complete(callee, *callable));
        }
    } else {
        Hold hold(*this);
        const code::Function* known = cache_->find(function);
        if (known == nullptr)
            return fail(ErrorCode::invalid,
                        "a function on {} calls code that is neither of this node's program nor of a package",
                        this->name());
        id = known->id;
        name = known->name;
        package = cache_->package_of(*known);
        callee = {.id = &id, .package = &package, .name = name};
    }
    if (to == this->id() && payload.size() > wire::kMessageBytesMax)
        return fail(ErrorCode::invalid, "{}: {} bytes of arguments are over the limit of {}", callee.name,
                    payload.size(), wire::kMessageBytesMax);
    if (to == this->id()) {
        ROVE_CHECK(in_time(deadline));
        ByteBuffer room;
        const Bytes joined = payload.joined(room);
        Hold hold(*this);
        ROVE_TRY(BegunCall begun, BegunCall::in(calls_, nullptr, wants_reply));
        ROVE_CHECK(send_to_self({to, *callee.id, joined,
                                 wire::FrameHeader{.flags = wants_reply ? std::uint8_t{0} : wire::kNoReply,
                                                   .generation = begun.id().generation,
                                                   .node = to,
                                                   .call = begun.id().slot}}));
        return sent_within(begun.sent(), wants_reply, deadline);
    }
    ROVE_TRY(const std::shared_ptr<PeerState> peer, linked(to));
    return call(peer, {.callee = callee, .payload = payload, .wants_reply = wants_reply, .deadline = deadline});
}

Result<std::shared_ptr<PeerState>> NodeCore::linked(NodeId to) {
    Hold hold(*this);
    const PeerState* found = routes_.to(to);
    for (const auto& each : peers_)
        if (each.get() == found && each->back == to) return each;
    if (is_client(to))
        return fail(ErrorCode::invalid, "{} has no link to client {:x}: only the node that a client met can call it",
                    this->name(), to);
    if (to < node_count()) return tl::unexpected<Error>(sender_.absent(to));
    return fail(ErrorCode::invalid, "{} knows no node {}: there are {}", this->name(), to, node_count());
}

// As of a function that is known to run long.
void NodeCore::hand_over_here() {
    Hold hold(*this);
    if (!runs_as_leader() || !lead_.has_followers() || options_.threads < 2) return;
    running_->begun = Clock::now();
    set_aside(*running_);
    lead_.hand_over_to_follower();
}

std::optional<code::Entered> NodeCore::hold_code(const code::Function& function) {
    auto entered = cache_->enter(const_cast<code::Function&>(function));
    if (auto* held = std::get_if<code::Entered>(&entered)) return std::move(*held);
    return std::nullopt;
}

bool NodeCore::reaches(NodeId node, std::string_view address) {
    Hold hold(*this);
    if (node == id()) return address == address_;
    const PeerState* peer = routes_.member(node);
    return peer != nullptr && peer->address == address;
}

}  // namespace rove
