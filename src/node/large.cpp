// Payloads and results that are larger than a frame: they travel in parts, and their receiver puts them together.
#include <sched.h>

#include <algorithm>

#include "node/core.hpp"
#include "node/lead_until.hpp"
#include "node/names.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// A peer that takes nothing of a large result for so long is stopped, or means ill.
constexpr auto kUntakenReplyFor = std::chrono::seconds(20);

}  // namespace

// ---- payloads, sent

// What is larger than a frame goes ahead of its call, in parts; the receiver puts them together.
Status NodeCore::send_in_parts(const std::shared_ptr<PeerState>& peer, Lock& lock, const Pieces& payload,
                               wire::Staged& staged, Deadline deadline) {
    ROVE_CHECK(make_alive(peer, lock, deadline));
    ROVE_CHECK(begin_large(*peer, lock, deadline));
    const fabric::Link* const link = peer->link.get();
    staged = {.number = ++peer->parts_sent, .total_bytes = payload.size()};
    const auto send_part = [&](std::size_t offset, Bytes piece) -> Status {
        let_others(lock);
        ROVE_CHECK(ready_to_send(peer, lock, piece.size(), deadline));
        if (peer->link.get() != link)
            return fail(ErrorCode::disconnected, "{} went while a call's arguments were on their way", who(*peer));
        const wire::Part part{.number = staged.number,
                              .offset = static_cast<std::uint32_t>(offset),
                              .total_bytes = static_cast<std::uint32_t>(payload.size())};
        return send(*peer, Traffic::calls, {.kind = Kind::part, .node = peer->my_id},
                    std::as_bytes(std::span(&part, 1)), piece);
    };
    Status sent;
    (void)payload.each_part(wire::kPartBytesMax, [&](std::size_t offset, Bytes piece) {
        sent = send_part(offset, piece);
        return sent.has_value();
    });
    end_large(*peer);
    if (!sent) take_back_parts(*peer, link, staged);
    return sent;
}

// Payloads go to a peer in parts one after the other: two that were on their way at once would hold twice the memory there, and
// be there no earlier. But a function that sends one while another waits beneath it in the same thread cannot wait for that.
Status NodeCore::begin_large(PeerState& peer, Lock& lock, Deadline deadline) {
    const std::thread::id self = std::this_thread::get_id();
    const auto free = [&] { return ending_ || peer.larges.empty() || peer.larges.back() == self; };
    if (!free() && !lead_until(lock, deadline, free))
        return fail(
            ErrorCode::timed_out,
            "{}: other large payloads were on their way there for as long as the call was given; it was not sent",
            who(peer));
    if (ending_) return tl::unexpected<Error>(stopped());
    if (peer.larges.size() >= kLargesMax)
        return fail(ErrorCode::overloaded, "{} functions, one within the other, send large payloads to {}",
                    peer.larges.size(), who(peer));
    peer.larges.push_back(self);
    return {};
}

void NodeCore::end_large(PeerState& peer) {
    peer.larges.pop_back();
    tell_waiting();
}

// A payload that its peer takes as fast as it is sent would keep the lock until all of it is sent.
void NodeCore::let_others(Lock& lock) {
    if (wanting_.load(std::memory_order_relaxed) == 0) return;
    lock.unlock();
    while (wanting_.load(std::memory_order_relaxed) > 0) sched_yield();
    lock.lock();
}

// Tells the peer that it need not keep what has come of a payload: its call will not come.
void NodeCore::take_back_parts(PeerState& peer, const fabric::Link* link, const wire::Staged& staged) {
    if (link == nullptr || peer.link.get() != link) return;  // it has forgotten them already
    const wire::Part part{.number = staged.number};
    (void)send(peer, Traffic::calls, {.kind = Kind::part, .node = peer.my_id}, std::as_bytes(std::span(&part, 1)), {});
}

// ---- payloads, received

// A payload's parts are put together apart from the mailbox. False: the frame stays, for there is no room for the payload yet; or
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
        if (!from.staged.may_begin(part.total_bytes)) return wrong("beyond what may arrive at once");
        // All peers together have as many payloads on their way here as may be: this one waits in its mailbox.
        from.waits_to_stage = staged_bytes_ + part.total_bytes > kAllStagedBytesMax;
        if (from.waits_to_stage) return false;
        Result<LargeBytes> place = spare_memory_->take(part.total_bytes);
        if (!place) {
            from.link->break_with(Error(ErrorCode::overloaded, name() + ": " + place.error().message()));
            return false;
        }
        staged_bytes_ += part.total_bytes;
        from.staged.begin(part.number, std::move(*place), Clock::now());
    }
    return from.staged.add(part, frame.payload) || wrong("of no payload that has begun, or out of its order");
}

void NodeCore::forget_parts(PeerState& from, std::uint64_t number) {
    staged_bytes_ -= from.staged.forget(number);
}

// Who has begun a payload goes on with it, or makes way.
unsigned NodeCore::cut_off_slow_senders(TimePoint now) {
    const bool others_wait =
        std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer->link && peer->waits_to_stage; });
    unsigned cut = 0;
    for (const auto& peer : peers_) {
        if (!peer->linked() || peer->staged.is_empty()) continue;
        if (const auto what = peer->staged.too_slow(now, !peer->link->pending(), others_wait)) {
            peer->link->break_with(Error(ErrorCode::overloaded, fmt::format("{} {}", who(*peer), *what)));
            ++cut;
        }
    }
    return cut;
}

// ---- results

// A piece of a result that is larger than a frame.
void NodeCore::on_reply_part(PeerState& from, const wire::Frame& frame) {
    if (frame.header.node != from.my_id) return route_frame(frame);
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

// Larger than a frame: in parts, each routed as the reply that follows them. Whoever replies waits for room, so that a caller who
// is slow to take large results is not cut off for it; one who takes nothing at all is.
bool NodeCore::reply_in_parts(const wire::FrameHeader& call, const Pieces& data, Lock& lock) {
    return data.each_part(wire::kPartBytesMax, [&](std::size_t offset, Bytes piece) {
        let_others(lock);
        PeerState* const peer = call.node != id() ? route(call.node) : nullptr;
        if (peer != nullptr) {
            const std::shared_ptr<PeerState> kept = peer->shared_from_this();
            const std::size_t bytes = wire::kHeaderBytes + sizeof(wire::Part) + piece.size();
            const Status room =
                wait_for_room(*kept, lock, Traffic::replies, bytes, Clock::now() + kUntakenReplyFor, true);
            if (!room && room.error().code() == ErrorCode::timed_out && kept->link)
                kept->link->break_with(Error(ErrorCode::overloaded, who(*kept) + " does not take its replies"));
            if (!room) return false;
        }
        const wire::Part part{.offset = static_cast<std::uint32_t>(offset),
                              .total_bytes = static_cast<std::uint32_t>(data.size())};
        route_frame({{.kind = Kind::part, .generation = call.generation, .node = call.node, .call = call.call},
                     std::as_bytes(std::span(&part, 1)),
                     piece});
        return true;
    });
}

}  // namespace rove
