// What becomes of a link that has ended, and of what was on its way over it.
//
// A stream ends before the goodbye arrives that says why, because that comes by another socket. So the transport's end alone is
// nobody's word: for kGoodbyeWait the link is kept, nothing is sent by it, and what has arrived is still served.
//
// Replies that the other side has not taken are kept, and sent again when the two have met again: a call's id has a generation, so
// one that comes twice is dropped. Calls are never sent twice. Those that had been sent on and not been taken end as disconnected
// at once; those that were taken end so when the process that took them is known to have gone.
#include <algorithm>

#include "node/core.hpp"
#include "node/lead_until.hpp"
#include "node/log.hpp"
#include "node/names.hpp"
#include "wire/kinds.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

// Whether why the link has ended may still be said.
bool NodeCore::awaits_goodbye(PeerState& peer) {
    if (peer.lost || !peer.link || !peer.link->has_ended()) return false;
    const TimePoint now = Clock::now();
    if (!peer.broken_since) peer.broken_since = now;
    return now < *peer.broken_since + kGoodbyeWait;
}

// For the thread that wants to meet the peer again: others' calls go on meanwhile. Nothing runs on top of it, because it may be about to
// send what it reads in place.
Status NodeCore::await_goodbye(PeerState& peer, Lock& lock, Deadline deadline) {
    if (!awaits_goodbye(peer)) return {};
    const std::uint64_t meeting = peer.meeting;
    const auto said = [&] { return peer.meeting != meeting || !awaits_goodbye(peer); };
    const TimePoint until = *peer.broken_since + kGoodbyeWait;
    const bool in_time = lead_until(lock, deadline ? std::min(*deadline, until) : until, said, {.holds_back = true});
    if (ending_) return tl::unexpected<Error>(stopped());
    if (in_time || said()) return {};
    return fail(ErrorCode::timed_out, "the link to {} has ended, and the call's time was over; it was not sent",
                who(peer));
}

// The leader has seen that the link cannot be used any more.
void NodeCore::notice_end(PeerState& peer) {
    if (awaits_goodbye(peer)) return;
    complaints_.say(name(), fmt::format("the link to {} ends: {}", who(peer), peer.link->broken()->message()));
    peer.lost = Error(ErrorCode::disconnected, peer.link->broken()->message());
    if (peer.hang_up) peer.hang_up(*peer.lost);
    housekeeping_due_ = {};
    housekeeping_in_ = 1;
}

// Replies that have arrived count, whoever it is that finds the link gone. No more than the ring holds: a direct peer may go on
// writing.
void NodeCore::take_last_replies(PeerState& peer) {
    wire::Frame frame;
    for (std::uint64_t taken = 0; taken < fabric::kRingLines && peer.link->next(Traffic::replies, frame); ++taken) {
        if (checked(peer, frame, Traffic::replies)) return;
        if (frame.header.kind == Kind::reply || frame.header.kind == Kind::part) on_reply_traffic(peer, frame);
        peer.link->release(Traffic::replies);
    }
}

// Those that the member may not have taken, and those that had not left. Where memory runs out in between, what was kept is kept once
// more when this is done again: its receiver drops what comes twice.
void NodeCore::keep_replies_of(PeerState& peer) {
    const auto keep = [&](const ByteBuffer& bytes) REQUIRES(lock_of<NodeLock>) {
        const wire::Frame frame = wire::frame_in(bytes);
        if (frame.header.kind != Kind::reply && frame.header.kind != Kind::part) return;
        // A direct peer could write there: what it made of them may be no reply any more.
        if (!wire::wrong_shape(frame, false).empty()) return;
        (void)absent_.keep(peer.id, frame.header, frame.extra, frame.payload, Clock::now());
    };
    for (const ByteBuffer& untaken : peer.link->untaken(Traffic::replies)) keep(untaken);
    for (const ByteBuffer& waiting : peer.outbox_of(Traffic::replies)) keep(waiting);
}

// Calls that nobody will answer any more, or that somebody else answers: then the answer came first, or is dropped.
void NodeCore::end_orphans() {
    for (auto& orphans = absent_.orphans(); !orphans.empty(); orphans.pop_front()) {
        const Error why(ErrorCode::disconnected,
                        orphans.front().why + "; the call had been sent on there, and may have run");
        orphans.front().calls.take_all([&](const Forwarded& call) noexcept {
            node_lock_is_held();
            end_with_error(header_of(call), why);
        });
    }
}

}  // namespace rove
