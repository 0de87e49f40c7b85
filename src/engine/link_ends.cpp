#include "engine/link_ends.hpp"

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "peer/names.hpp"
#include "wire/kinds.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// Gives the calls of others that wait for room in the peer's mailbox to `end`. They are known as those in the mailbox are, and removed
// there.
template <typename End>
void take_unsent(PeerState& peer, End&& end) REQUIRES(lock_of<EngineLock>) {
    static_assert(noexcept(end(std::declval<const wire::CallContext&>())));
    for (const ByteBuffer& waiting : peer.outbox_of(Traffic::calls)) {
        const wire::Frame frame = wire::frame_in(waiting);
        const wire::CallContext call = wire::context_of(frame);
        if (frame.header.kind != Kind::call || call.node == peer.my_id()) continue;
        (void)peer.sends.sent_on.answered(call.node, call.call, call.generation);
        end(call);
    }
}

// Whether the peer's goodbye, with the reason, may still arrive.
bool awaits_goodbye(PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    return peer.awaits_goodbye(Clock::now());
}

}  // namespace

Status LinkEnds::await_goodbye(PeerState& peer, HeldLock& lock, Deadline deadline) {
    if (!awaits_goodbye(peer)) return {};
    const std::uint64_t meeting = peer.meeting();
    const auto said = [&]()
                          REQUIRES(lock_of<EngineLock>) { return peer.meeting() != meeting || !awaits_goodbye(peer); };
    const TimePoint until = peer.goodbye_until();
    const bool in_time =
        runner_.wait_until(lock, deadline ? std::min(*deadline, until) : until, said, {.holds_back = true});
    if (runner_.is_ending()) return tl::unexpected<Error>(was_shut_down(name_()));
    if (in_time || said()) return {};
    return fail(ErrorCode::timed_out, "the link to {} has ended, and the call's time was over; it was not sent",
                who(peer));
}

void LinkEnds::notice(PeerState& peer) {
    if (awaits_goodbye(peer)) return;
    complaints_.say(name_(), fmt::format("the link to {} ends: {}", who(peer), peer.link()->broken()->message()));
    peer.lose(Error(ErrorCode::disconnected, peer.link()->broken()->message()));
    peer.hang_up(*peer.lost());
    housekeeping_.hurry();
}

void LinkEnds::lose(PeerState& peer, Error why) {
    peer.lose(std::move(why));
    housekeeping_.hurry();
    lead_.wake();
    lead_.tell_waiting();
}

// Each step may be repeated without harm, and releases what it uses only after it has succeeded.
void LinkEnds::clean_up(PeerState& peer) {
    peer.begin_end();
    log().info("{}: {} is gone: {}", name_(), who(peer), peer.gone());
    const Error why(ErrorCode::disconnected, peer.gone());
    const Error not_sent(ErrorCode::disconnected, fmt::format("{} was lost before the call was sent on to it{}",
                                                              who(peer), because(peer.gone())));
    buried_.reserve(buried_.size() + 1);
    take_last_replies(peer);
    own_calls_.peer_left(
        peer, Error(ErrorCode::disconnected,
                    fmt::format("{} was lost during the call, which may have run ({})", who(peer), peer.gone())));
    const bool member = leave_routes(peer);
    for (Service* const service : services_) service->peer_left(peer.back());
    end_sent_on(peer, member, not_sent);
    exchange_.peer_left(peer);
    peer.hang_up(why);
    housekeeping_.hurry();
    payload_parts_.forget_all(peer);
    buried_.push_back(peer.end_meeting(dropped_));
    ++count_;
    lead_.forget_links();
    lead_.tell_waiting();
}

// Nothing is sent to it any more. Replies for callers at a member wait until it is met again. True: it was a member.
bool LinkEnds::leave_routes(PeerState& peer) {
    const bool is_there = peer.is_member() && routes_.member(peer.id()) == &peer;
    const bool member = peer.leaves_as_member(is_there);
    if (is_there) {
        absent_.lost(peer.id(), peer.identity().process, who(peer) + " cannot be reached" + because(peer.gone()));
        keep_replies_of(peer);
    }
    routes_.leave(peer);
    return member;
}

// Ends the calls of others that were sent on to the peer, or waited to be, and the peer's own. Calls that a member has taken are not ended yet:
// it may still answer them, or have sent them on.
void LinkEnds::end_sent_on(PeerState& peer, bool member, const Error& not_sent) {
    const Error not_taken(
        ErrorCode::disconnected,
        fmt::format("{} was lost while the call was on it; it may have run{}", who(peer), because(peer.gone())));
    const auto end = [&](const Forwarded& call) noexcept {
        engine_lock_is_held();
        answers_.end_with_error(context_of(call), not_taken);
    };
    take_unsent(peer, [&](const wire::CallContext& call) noexcept {
        engine_lock_is_held();
        answers_.end_with_error(call, not_sent);
    });
    if (!member) {
        peer.sends.sent_on.take_all(end);
    } else {
        peer.sends.sent_on.take_untaken(peer.link()->lines_credited(Traffic::calls), end);
        absent_.had_taken(peer.id(), peer.sends.sent_on);
    }
    caller_left(peer.back());
    others_.leave_to_all(LeftForEngine::What::caller_left, {.node = peer.back()});
    absent_.caller_left(peer.back());
    end_orphans();
}

void LinkEnds::caller_left(NodeId name) {
    for (PeerState* const member : routes_.members())
        if (member != nullptr) member->sends.sent_on.left(name);
}

// Takes the replies that had arrived when the link ended. No more than the ring holds, because a direct peer may keep
// writing.
void LinkEnds::take_last_replies(PeerState& peer) {
    wire::Frame frame;
    for (std::uint64_t taken = 0; taken < fabric::kRingLines && peer.link()->next(Traffic::prompt, frame); ++taken) {
        if (checks_.wrong_with(peer, frame, Traffic::prompt)) return;
        if (wire::is_answer(frame.header.kind)) replies_.receive(peer, frame);
        peer.link()->release(Traffic::prompt);
    }
}

// Those that the member may not have taken, and those that had not left. Where memory runs out in between, what was kept is kept once
// more when this is done again: its receiver drops what arrives twice.
void LinkEnds::keep_replies_of(PeerState& peer) {
    const auto keep = [&](const ByteBuffer& bytes) REQUIRES(lock_of<EngineLock>) {
        const wire::Frame frame = wire::frame_in(bytes);
        // A direct peer could write there: what it made of them may be no frame any more.
        if (!wire::wrong_shape(frame, false, peer.identity().features).empty() || !wire::is_answer(frame.header.kind))
            return;
        (void)absent_.keep(peer.id(), frame.header, frame.extra, frame.payload, Clock::now());
    };
    for (const ByteBuffer& untaken : peer.link()->untaken(Traffic::prompt)) keep(untaken);
    for (const ByteBuffer& waiting : peer.outbox_of(Traffic::prompt)) keep(waiting);
}

void LinkEnds::end_orphans() {
    for (AbsentMembers::Orphans& orphans : absent_.take_orphans())
        orphans.calls.take_all([&](const Forwarded& call) noexcept {
            engine_lock_is_held();
            answers_.end_with_error(context_of(call), orphans.why);
        });
}

}  // namespace rove
