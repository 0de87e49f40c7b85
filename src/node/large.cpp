// Payloads and results that are larger than a frame: they travel in parts, and their receiver puts them together.
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "node/core.hpp"
#include "node/lead_until.hpp"
#include "node/names.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// How long a payload is sent from where it lies, from when it first waits, and others' calls wait for that where this thread alone could
// run them. The largest takes 5 to 15 ms through shared memory.
constexpr auto kLargeHoldsBackFor = std::chrono::milliseconds(20);
// A peer that takes nothing of a large result for this long is cut off: it is stopped, or hostile.
constexpr auto kUntakenReplyFor = std::chrono::seconds(20);

}  // namespace

// ---- payloads, sent

// One that is on its way, or waits for its turn.
struct NodeCore::LargeSend {
    LargeTurns::Turn turn;
    const Pieces& payload;
    Deadline deadline;
    std::uint64_t meeting = 0;              // in which it is sent
    std::optional<std::uint32_t> handle{};  // of the function, where the peer has told it before
    wire::Staged staged{};
    std::optional<TimePoint> holds_back_until{};  // once it has waited
    std::optional<LargeBytes> copy{};             // in place of `payload`
};

// What is larger than a frame goes ahead of its call, in parts; the receiver puts them together. Its turn lasts until the call is on
// its way, too: so no half payload lies behind one that waits for memory there, but for those that functions send on top of this wait.
Result<CallTable::Id> NodeCore::call_in_parts(const std::shared_ptr<PeerState>& peer, Lock& lock,
                                              const Outgoing& outgoing) {
    LargeSend sent{.turn{peer->larges}, .payload = outgoing.payload, .deadline = outgoing.deadline};
    struct End {  // also where memory runs out
        NodeCore& core;
        PeerState& peer;
        Lock& lock;
        LargeSend& sent;
        bool called = false;
        ~End() NO_THREAD_SAFETY_ANALYSIS {  // which has no word for a lock that may be held
            if (!lock.owns_lock()) lock.lock();
            if (!called) core.take_back_parts(peer, sent);
            sent.turn.end();
            core.lead_.tell_waiting();
        }
    } end{*this, *peer, lock, sent};
    const auto send_all = [&]() REQUIRES(lock_of<NodeLock>) -> Result<CallTable::Id> {
        ROVE_CHECK(begin_large(*peer, lock, sent));
        ROVE_CHECK(make_alive(peer, lock, sent.deadline));
        sent.meeting = peer->meeting;
        sent.handle = peer->bindings.handle_of(*outgoing.callee.id);
        sent.staged = {.number = ++peer->parts_sent, .total_bytes = sent.payload.size()};
        ROVE_CHECK(send_in_parts(*peer, lock, sent));
        if (sent.handle &&
            peer->bindings.handle_of(*outgoing.callee.id) != sent.handle) {  // the call would be of another
            take_back_parts(*peer, sent);
            sent.handle.reset();
            sent.staged.number = ++peer->parts_sent;
            ROVE_CHECK(send_in_parts(*peer, lock, sent));
        }
        return call_whole(peer, lock, outgoing, &sent.staged);
    };
    Result<CallTable::Id> id = send_all();
    end.called = id.has_value();
    return id;
}

// Waits for its turn.
Status NodeCore::begin_large(PeerState& peer, Lock& lock, LargeSend& sent) {
    const auto wait = [&](Deadline deadline, Manner manner) REQUIRES(lock_of<NodeLock>) -> Status {
        if (lead_until(lock, deadline, [&] { return sent.turn.is_next(); }, manner)) return {};
        if (ending_) return tl::unexpected<Error>(stopped());
        return fail(
            ErrorCode::timed_out,
            "{}: other large payloads were on their way there for as long as the call was given; it was not sent",
            who(peer));
    };
    if (!sent.turn.is_next()) ROVE_CHECK(wait_in_large(lock, sent, wait));
    if (peer.larges.begun() >= kLargesMax)
        return fail(ErrorCode::overloaded, "{} functions, one on top of the other's wait, send large payloads to {}",
                    peer.larges.begun(), who(peer));
    sent.turn.begin();
    return {};
}

Status NodeCore::send_in_parts(PeerState& peer, Lock& lock, LargeSend& sent) {
    const auto wait_for = [&](std::size_t bytes) REQUIRES(lock_of<NodeLock>) -> Status {
        let_others(lock);
        if (peer.meeting == sent.meeting && !(peer.clear_way() && peer.link->has_room(Traffic::calls, bytes)))
            ROVE_CHECK(
                wait_in_large(lock, sent, [&](Deadline deadline, Manner manner) REQUIRES(lock_of<NodeLock>) -> Status {
                    ROVE_CHECK(no_frame_begun(peer));
                    return wait_for_room(peer, lock, Traffic::calls, bytes, deadline, manner);
                }));
        if (peer.meeting == sent.meeting && peer.linked()) return {};
        return fail(ErrorCode::disconnected, "{} went while a call's arguments were on their way{}", who(peer),
                    because(peer.gone));
    };
    const auto send_part = [&](std::size_t offset, Bytes piece) REQUIRES(lock_of<NodeLock>) -> Status {
        ROVE_CHECK(wait_for(wire::kHeaderBytes + sizeof(wire::Part) + piece.size()));
        if (sent.copy) piece = sent.copy->bytes().subspan(offset, piece.size());
        const wire::Part part{.number = sent.staged.number,
                              .offset = static_cast<std::uint32_t>(offset),
                              .total_bytes = static_cast<std::uint32_t>(sent.payload.size())};
        // The first one names the function, so that this can read the payload as it arrives. One more: 0 is none.
        const std::uint32_t function = offset == 0 && sent.handle ? *sent.handle + 1 : 0;
        return sender_.send(peer, Traffic::calls, {.kind = Kind::part, .handle = function, .node = peer.my_id},
                            std::as_bytes(std::span(&part, 1)), piece);
    };
    Status all;
    (void)sent.payload.each_part(wire::kPartBytesMax, [&](std::size_t offset, Bytes piece) {
        node_lock_is_held();
        all = send_part(offset, piece);
        return all.has_value();
    });
    if (!all) return all;
    return wait_for(wire::kHeaderBytes + sizeof(wire::Either) + sizeof(wire::Staged));  // for the call
}

// The payload is read where it lies, and a function that ran on top of this wait could change it: nothing does at first. But the peer
// may itself be waiting for a call that only this thread can run. So after a while the payload is copied, and then functions run.
template <typename Wait>
Status NodeCore::wait_in_large(Lock& lock, LargeSend& sent, const Wait& wait) {
    if (!sent.copy) {
        if (!sent.holds_back_until) sent.holds_back_until = Clock::now() + kLargeHoldsBackFor;
        const bool is_last = sent.deadline && *sent.deadline <= *sent.holds_back_until;
        const Status done =
            wait(is_last ? sent.deadline : Deadline(sent.holds_back_until), {.holds_back = true, .turn = &sent.turn});
        if (done || is_last || done.error().code() != ErrorCode::timed_out) return done;
        ROVE_CHECK(keep_apart(lock, sent));
    }
    return wait(sent.deadline, {.turn = &sent.turn});
}

// Without the lock: what is large takes long.
Status NodeCore::keep_apart(Lock& lock, LargeSend& sent) {
    ROVE_TRY(LargeBytes copy, spare_memory_->take(sent.payload.size()));
    lock.unlock();
    (void)sent.payload.each_part(wire::kPartBytesMax, [&copy](std::size_t offset, Bytes piece) {
        std::memcpy(copy.data() + offset, piece.data(), piece.size());
        return true;
    });
    lock.lock();
    sent.copy = std::move(copy);
    return {};
}

// A payload that its peer takes as fast as it is sent would keep the lock until all of it is sent.
void NodeCore::let_others(Lock& lock) {
    if (!lead_.mutex().is_wanted()) return;
    lock.unlock();
    lead_.mutex().let_in();
    lock.lock();
}

// Tells the peer that it need not keep what has come of a payload: its call will not come. Where there is no memory for that, the link's
// end tells it.
void NodeCore::take_back_parts(PeerState& peer, const LargeSend& sent) try {
    if (!peer.link || peer.meeting != sent.meeting) return;  // it has forgotten them already
    const wire::Part part{.number = sent.staged.number};
    (void)sender_.send(peer, Traffic::calls, {.kind = Kind::part, .node = peer.my_id},
                       std::as_bytes(std::span(&part, 1)), {});
} catch (const std::bad_alloc&) {
    peer.link->break_with(no_memory());
}

// ---- payloads, received

// A payload's parts are put together apart from the mailbox. False: the frame stays, because there is no room for the payload yet; or
// it does not fit, and the link is broken.
bool NodeCore::take_part(PeerState& from, const wire::Frame& frame) {
    wire::Part part;
    std::memcpy(&part, frame.extra.data(), sizeof part);
    const auto wrong = [&from](std::string_view what) {
        from.link->break_with(Error(ErrorCode::invalid, fmt::format("{} sent a part {}", who(from), what)));
        return false;
    };
    if (part.total_bytes > wire::kMessageBytesMax) return wrong("of a payload over the limit");
    if (part.total_bytes == 0) {
        forget_parts(from, part.number);
        return true;
    }
    if (part.offset == 0) {
        if (from.staged.contains(part.number)) return wrong("of a payload that has begun already");
        const std::size_t room = SpareMemory::room_for(part.total_bytes);
        if (!from.staged.may_begin(room)) return wrong("beyond what may arrive at once");
        // All peers together have as many payloads on their way here as may be: this one waits in its mailbox.
        from.waits_to_stage = staged_bytes_ + room > kAllStagedBytesMax;
        if (from.waits_to_stage) return false;
        Result<LargeBytes> place = spare_memory_->take(part.total_bytes);
        if (!place) {
            from.link->break_with(Error(ErrorCode::overloaded, name() + ": " + place.error().message()));
            return false;
        }
        from.staged.begin(part.number, std::move(*place), Clock::now());  // first: there may be no memory
        staged_bytes_ += room;
    }
    return from.staged.add(part, frame.payload) || wrong("of no payload that has begun, or out of its order");
}

void NodeCore::forget_parts(PeerState& from, std::uint64_t number) {
    staged_bytes_ -= from.staged.forget(number);
}

// Who has begun a payload goes on with it, or makes way.
unsigned NodeCore::cut_off_slow_senders(TimePoint now) {
    const bool room_wanted =
        std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer->link && peer->waits_to_stage; });
    unsigned cut = 0;
    for (const auto& peer : peers_) {
        if (!peer->linked() || peer->staged.is_empty()) continue;
        const std::uint64_t taken = peer->link->lines_read(Traffic::calls);
        const bool goes_on = std::exchange(peer->taken_at_look, taken) != taken;
        const bool kept = peer->link->keeps_back(Traffic::calls);
        const bool waits = peer->link->pending() && !goes_on && !peer->owes_code() && !peer->has_backlog();
        const auto next = peer->waits_to_stage ? Staging::Next::waits_here
                          : kept || waits      ? Staging::Next::other
                                               : Staging::Next::nothing;
        if (const auto what = peer->staged.too_slow(now, next, room_wanted)) {
            peer->link->break_with(Error(ErrorCode::overloaded, fmt::format("{} {}", who(*peer), *what)));
            ++cut;
        }
    }
    return cut;
}

// ---- results

// A piece of a result that is larger than a frame.
void NodeCore::on_reply_part(PeerState& from, const wire::Frame& frame) {
    if (frame.header.node != from.my_id) return sender_.route(frame);
    CallSlot* slot = calls_.flying({frame.header.call, frame.header.generation});
    if (slot == nullptr || !may_answer(from, *slot)) return;  // late, or somebody else's to answer
    wire::Part part;
    std::memcpy(&part, frame.extra.data(), sizeof part);
    const auto gathered = part.total_bytes > wire::kMessageBytesMax
                              ? CallTable::Gathered::wrong
                              : calls_.gather(*slot, part.offset, part.total_bytes, frame.payload);
    if (gathered == CallTable::Gathered::wrong)
        from.link->break_with(Error(ErrorCode::invalid, who(from) + " sent a part of a result out of its order"));
    if (gathered == CallTable::Gathered::ended) call_ended(*slot);  // the other parts, and the reply, are late then
}

// Waits while at least `waiting` bytes of replies are queued for the caller's node. False: it takes nothing and was cut off, or has gone.
bool NodeCore::await_room_to_reply(NodeId to, std::size_t bytes, std::size_t waiting, Lock& lock) {
    PeerState* const peer = to != id() ? routes_.to(to) : nullptr;
    if (peer == nullptr || peer->outbox_of(Traffic::replies).bytes() < waiting) return true;
    const std::shared_ptr<PeerState> kept = peer->shared_from_this();
    for (;;) {
        const Status room =
            wait_for_room(*kept, lock, Traffic::replies, bytes, Clock::now() + kUntakenReplyFor, {.quiet = true});
        if (room || room.error().code() != ErrorCode::timed_out || !kept->link) return room.has_value();
        if (Clock::now() - kept->outbox_of(Traffic::replies).taken_at() < kUntakenReplyFor) continue;  // slowly
        kept->link->break_with(Error(ErrorCode::overloaded, who(*kept) + " does not take its replies"));
        return false;
    }
}

// Larger than a frame: in parts, each routed as the reply that follows them. Whoever replies waits for room, so that a caller who
// is slow to take large results is not cut off for it; one who takes nothing at all is.
bool NodeCore::reply_in_parts(const wire::FrameHeader& call, const Pieces& data, Lock& lock) {
    const auto meeting = [&] {
        const PeerState* const peer = routes_.to(call.node);
        return peer != nullptr ? peer->meeting.load(std::memory_order_relaxed) : 0;
    };
    const std::uint64_t begun_in = meeting();
    return data.each_part(wire::kPartBytesMax, [&](std::size_t offset, Bytes piece) {
        node_lock_is_held();
        let_others(lock);
        if (!await_room_to_reply(call.node, wire::kHeaderBytes + sizeof(wire::Part) + piece.size(), 0, lock))
            return false;
        if (begun_in != 0 && meeting() != begun_in) return false;  // the parts before this one went with the link
        const wire::Part part{.offset = static_cast<std::uint32_t>(offset),
                              .total_bytes = static_cast<std::uint32_t>(data.size())};
        sender_.route({{.kind = Kind::part, .generation = call.generation, .node = call.node, .call = call.call},
                       std::as_bytes(std::span(&part, 1)),
                       piece});
        return true;
    });
}

}  // namespace rove
