// BegunCall: a call that has its slot and is not sent yet; whether it may still be, and the context with which it is.
//
// Threads: under the engine's lock.
#pragma once

#include <utility>

#include "peer/calls.hpp"
#include "peer/peer_state.hpp"

namespace rove {

// Asked at each entrance before anything is sent: where a limit is over beforehand nothing runs, even if there is room.
[[nodiscard]] inline Status in_time(Deadline deadline) {
    if (!deadline || Clock::now() < *deadline) return {};
    return fail(ErrorCode::timed_out, "the time that the call was given was over beforehand; it was not sent");
}

// The context of a call that this node makes itself, as the node is called where it is sent. Nobody waits: `id` is nothing.
[[nodiscard]] constexpr wire::CallContext made_by(NodeId me, CallId id, wire::CallContext call) {
    call.generation = id.generation;
    call.node = me;
    call.call = id.slot;
    call.hops = 0;
    return call;
}

// Gives the slot back unless the call was sent, also where memory ran out on the way.
class BegunCall {
public:
    // Not `wanted`: nobody waits for its end, and it has no slot.
    static Result<BegunCall> in(CallTable& table, PeerState* peer, bool wanted) {
        if (!wanted) return BegunCall(nullptr, {0, 0});
        ROVE_TRY(const CallId id, table.begin(peer));
        return BegunCall(&table, id);
    }
    BegunCall(BegunCall&& other) noexcept : table_(std::exchange(other.table_, nullptr)), id_(other.id_) {}
    BegunCall& operator=(BegunCall&&) = delete;
    ~BegunCall() {
        if (table_ != nullptr) table_->release(id_);
    }
    [[nodiscard]] CallId id() const { return id_; }
    // The slot is its answer's, and whoever waits for that gives it back.
    CallId sent() {
        table_ = nullptr;
        return id_;
    }

private:
    BegunCall(CallTable* table, CallId id) : table_(table), id_(id) {}
    CallTable* table_;
    CallId id_;
};

}  // namespace rove
