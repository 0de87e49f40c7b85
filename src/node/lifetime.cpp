// Who may still use a node: objects of a program outlive it, and a forked child has a copy that it must not touch.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "base/made_once.hpp"
#include "node/built_ins.hpp"
#include "node/core.hpp"
#include "node/gathering.hpp"
#include "node/here.hpp"
#include "node/log.hpp"

namespace rove {

namespace {

struct Living {
    Mutex mutex;
    std::unordered_map<const void*, std::weak_ptr<NodeCore>> nodes GUARDED_BY(mutex);
};
// Never destroyed: a program's globals may hold nodes.
Living& all_living() {
    static constinit MadeOnce<Living> kept;
    return kept.get([] {
        auto* made = new Living;
        hold_across_forks(made->mutex);
        return made;
    });
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
    const MutexLock lock(all.mutex);
    all.nodes[core.get()] = core;
}

std::shared_ptr<NodeCore> NodeCore::living(const void* node) {
    Living& all = all_living();
    const MutexLock lock(all.mutex);
    const auto found = all.nodes.find(node);
    return found != all.nodes.end() ? found->second.lock() : nullptr;
}

// The child of a fork keeps its copy: to end it would join threads that are not there, and take leave in the parent's name.
void NodeCore::Delete::operator()(NodeCore* core) const {
    if (core->is_inherited()) return;
    {
        Living& all = all_living();
        const MutexLock lock(all.mutex);
        all.nodes.erase(core);
    }
    delete core;
}

// The function ends its thread (pthread_exit), which may lead, and whose stack holds what others rely on. So the thread stays, as with a
// function that never returns, and one of the node's own gets another one in its place. So does a thread of the program that waits: what
// it called cannot be unwound.
void NodeCore::keep_thread(rove_here* here) {
    const std::string whose = here != nullptr ? here->function->name : "a callback";
    stay_in_parent(whose);
    const bool own = own_threads_.is_mine();
    const std::string what = fmt::format("{} on {} wanted to end its thread, which {}", whose, name(),
                                         own ? "is the node's" : "is its program's");
    log().error("{}; that thread is kept, and runs nothing more", what);
    if (here != nullptr && here->gathering != nullptr)
        here->gathering->skip_rest(*here);  // the call comes after its parts
    if (here != nullptr && !std::exchange(here->ended, true)) reply_error(here->call, Error(ErrorCode::failed, what));
    Run* const run = in_user_code_.run;
    // Those that wait in the same thread never return either.
    for (const Run* each = run != nullptr ? run->beneath : nullptr; each != nullptr; each = each->beneath)
        if (each->here != nullptr && !std::exchange(each->here->ended, true))
            reply_error(each->here->call,
                        Error(ErrorCode::failed, fmt::format("{} on {} waited for a call, and its thread ran {}, "
                                                             "which wanted to end that thread",
                                                             each->function->name, name(), whose)));
    Status replaced;
    {
        Hold hold(*this);
        step_aside();
        lead_.leave_to_others();
        for (Run* each = run; each != nullptr; each = each->beneath)
            if (each->let_go()) lead_.wake();  // nothing reads their payloads
        const bool ran = run != nullptr && run->handed_over;
        const bool is_to_be_replaced = own && ran;
        if (is_to_be_replaced) replaced = own_threads_.keep_mine();
        const bool is_replaced = is_to_be_replaced && replaced;
        for (Run* each = ran && (is_replaced || !own) ? run : nullptr; each != nullptr; each = each->beneath) {
            give_place(*each);
            long_run_list_.remove(*each);
            --busy_;  // the node's end does not wait for it
        }
    }
    if (!replaced) log().error("{} is a thread short: {}; restart it", name(), replaced.error().message());
    for (;;) pause();
}

// Where C functions are left there is nothing that says how to unwind them, so no handler of the node's would be told.
void NodeCore::exit_thread(void* result) {
    if (in_user_code_.core != nullptr) in_user_code_.core->keep_thread(in_user_code_.run->here);
    pthread_exit(result);
}

bool NodeCore::is_in_function() {
    return in_user_code_.run != nullptr && in_user_code_.run->function != nullptr;
}

void NodeCore::post_in_meeting(PeerState& peer, std::uint64_t meeting, const Callee& callee, Bytes payload) {
    if (!is_usable()) return;
    Hold hold(*this);
    if (!peer.linked() || peer.meeting.load(std::memory_order_relaxed) != meeting) return;
    // After what waits for room already; a peer whose outbox is full keeps the memory until it or this node goes.
    (void)send_call(peer, callee, {.flags = wire::kNoReply, .node = peer.my_id}, payload);
}

// ---- memory on other nodes that nobody takes

void NodeCore::expect_memory(CallTable::Id id) {
    Hold hold(*this);
    if (CallSlot* const slot = calls_.find(id)) slot->brings_memory = true;
}

// Whoever waited for the call gives it up: before its answer has come, or with it.
void NodeCore::leave_memory(CallSlot& slot) noexcept try {
    const auto peer =
        std::find_if(peers_.begin(), peers_.end(), [&](const auto& each) { return each.get() == slot.peer; });
    if (peer == peers_.end() || !(*peer)->linked()) return;
    if (slot.state == CallSlot::State::ended && !slot.error())
        free_memory(**peer, slot.data());
    else if (!slot.error() || slot.error()->node() == Error::no_node)  // it was late, or cancelled
        untaken_.expect(slot.id(), peer->get());
} catch (const std::bad_alloc&) {  // it stays on its node until this one goes
}

// To a call that was forgotten, or has ended without it: because it was late, was cancelled, or a node on the way went.
void NodeCore::on_late_reply(PeerState* from, const wire::Frame& frame) {
    const CallTable::Id id{frame.header.call, frame.header.generation};
    CallSlot* const slot = calls_.find(id);
    const bool waits = slot != nullptr && slot->peer == from && std::exchange(slot->brings_memory, false);
    if ((!waits && !untaken_.take(id, from)) || from == nullptr || (frame.header.flags & wire::kError) != 0) return;
    free_memory(*from, frame.payload);
}

void NodeCore::free_memory(PeerState& peer, Bytes place) {
    wire::MemoryPlace which;
    if (place.size() != sizeof which) return;
    std::memcpy(&which, place.data(), sizeof which);
    (void)send_call(peer, {.id = &built_ins().free, .own = true}, {.flags = wire::kNoReply, .node = peer.my_id},
                    std::as_bytes(std::span(&which.key, 1)));
}

}  // namespace rove
