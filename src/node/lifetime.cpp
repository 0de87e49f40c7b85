// Who may still use a node: objects of a program outlive it, and a forked child has a copy that it must not touch.
#include <unordered_map>

#include "node/core.hpp"

namespace rove {

namespace {

struct Living {
    std::mutex mutex;
    std::unordered_map<const void*, std::weak_ptr<NodeCore>> nodes;
};
// Never destroyed: a program's globals may hold nodes.
Living& all_living() {
    static Living* const kept = [] {
        auto* made = new Living;
        hold_across_forks(made->mutex);
        return made;
    }();
    return *kept;
}

}  // namespace

Error NodeCore::why_unusable() const {
    if (is_inherited())
        return {ErrorCode::invalid,
                "this process is a fork of the one that made the node: make a Node of its own after fork()"};
    return {ErrorCode::cancelled, "the node was shut down"};
}

void NodeCore::remember(const std::shared_ptr<NodeCore>& core) {
    Living& all = all_living();
    const std::lock_guard lock(all.mutex);
    all.nodes[core.get()] = core;
}

std::shared_ptr<NodeCore> NodeCore::living(const void* node) {
    Living& all = all_living();
    const std::lock_guard lock(all.mutex);
    const auto found = all.nodes.find(node);
    return found != all.nodes.end() ? found->second.lock() : nullptr;
}

// The child of a fork keeps its copy: to end it would join threads that are not there, and take leave in the parent's name.
void NodeCore::Delete::operator()(NodeCore* core) const {
    if (core->is_inherited()) return;
    {
        Living& all = all_living();
        const std::lock_guard lock(all.mutex);
        all.nodes.erase(core);
    }
    delete core;
}

void NodeCore::post_in_meeting(PeerState& peer, std::uint64_t meeting, const Callee& callee, Bytes payload) {
    if (!is_usable()) return;
    Hold hold(*this);
    if (!peer.linked() || peer.meeting.load(std::memory_order_relaxed) != meeting) return;
    // After what waits for room already; a peer whose outbox is full keeps the memory until it or this node goes.
    (void)send_call(peer, callee, {.flags = wire::kNoReply, .node = peer.my_id}, payload);
}

}  // namespace rove
