// BegunCall: a call that has its slot and is not sent yet. Also: whether a call may still be sent, and the context that is sent with it.
//
// Threads: under the engine's lock, also when it is destroyed. Invariant: until sent() the slot belongs to this object, and afterwards to the
// answer; so each slot is given back once.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "peer/calls.hpp"
#include "peer/names.hpp"
#include "peer/peer_state.hpp"

namespace rove {

[[nodiscard]] inline bool has_passed(Deadline deadline) {
    return deadline && Clock::now() >= *deadline;
}
[[nodiscard]] inline Error not_sent_in_time(std::string_view receiver) {
    return {ErrorCode::timed_out,
            fmt::format("{}: the time that the call was given was over before it was sent", receiver)};
}
// Checked by each function that begins a call, before anything is sent: if the limit has passed already nothing runs, even if there is room.
[[nodiscard]] inline Status in_time(Deadline deadline, const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    if (!has_passed(deadline)) return {};
    return tl::unexpected<Error>(not_sent_in_time(who(peer)));
}

// The context of a call that this node makes itself. `me`: this node's id as the receiver knows it. `id`: zeros where nobody waits for the end.
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
    // Not `wanted`: nobody waits for the call's end, and it has no slot.
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
    // From here on the slot belongs to the answer, and whoever waits for that gives it back.
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
