// Payloads that are larger than a frame: they are sent ahead of their calls, in parts.
#include <algorithm>
#include <cstring>

#include "engine/caller.hpp"
#include "peer/names.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// For how long after its first wait a payload is sent from its own place. In that time calls wait that only this thread could run. The
// largest payload takes 5 to 15 ms through shared memory.
constexpr auto kLargeHoldsBackFor = std::chrono::milliseconds(20);

}  // namespace

// A large payload that is being sent, or waits for its turn.
struct Caller::LargeSend {
    LargeQueue::Place place;
    const Pieces& payload;
    Deadline deadline;
    std::uint64_t meeting = 0;              // in which it is sent
    std::optional<std::uint32_t> handle{};  // of the function, where the peer has sent it before
    wire::Staged staged{};
    std::optional<TimePoint> holds_back_until{};  // once it has waited
    std::optional<LargeBytes> copy{};             // in place of `payload`
};

// Sends a payload that is larger than a frame before its call, in parts, which the receiver reassembles. The turn lasts until the call is sent,
// too: so no half payload follows one that waits for memory there, except those that functions send on top of this wait.
Result<CallId> Caller::call_in_parts(const PeerPointer& peer, Lock& lock, const Outgoing& outgoing) {
    LargeSend sent{.place{peer->sends.larges}, .payload = outgoing.payload, .deadline = outgoing.deadline};
    struct End {  // also where memory runs out
        Caller& caller;
        PeerState& peer;
        Lock& lock;
        LargeSend& sent;
        bool called = false;
        ~End() NO_THREAD_SAFETY_ANALYSIS {  // which has no word for a lock that may be held
            if (!lock.owns_lock()) lock.lock();
            if (!called) caller.take_back_parts(peer, sent);
            sent.place.end();
            caller.lead_.tell_waiting();
        }
    } end{*this, *peer, lock, sent};
    const auto send_all = [&]() REQUIRES(lock_of<EngineLock>) -> Result<CallId> {
        ROVE_CHECK(begin_large(*peer, lock, sent));
        ROVE_CHECK(make_alive(peer, lock, sent.deadline));
        sent.meeting = peer->meeting();
        sent.handle = peer->code.bindings.handle_of(*outgoing.callee.id);
        sent.staged = {.number = peer->sends.next_in_parts(), .total_bytes = sent.payload.size()};
        ROVE_CHECK(send_in_parts(*peer, lock, sent));
        if (sent.handle &&
            peer->code.bindings.handle_of(*outgoing.callee.id) != sent.handle) {  // the call would be of another
            take_back_parts(*peer, sent);
            sent.handle.reset();
            sent.staged.number = peer->sends.next_in_parts();
            ROVE_CHECK(send_in_parts(*peer, lock, sent));
        }
        return call_whole(peer, lock, outgoing, &sent.staged);
    };
    Result<CallId> id = send_all();
    end.called = id.has_value();
    return id;
}

// Waits for its turn.
Status Caller::begin_large(PeerState& peer, Lock& lock, LargeSend& sent) {
    const auto wait = [&](Deadline deadline, Runner::Manner manner) REQUIRES(lock_of<EngineLock>) -> Status {
        if (runner_.wait_until(lock, deadline, [&] { return sent.place.is_next(); }, manner)) return {};
        if (runner_.is_ending()) return tl::unexpected<Error>(was_shut_down(name_()));
        return fail(
            ErrorCode::timed_out,
            "{}: other large payloads were on their way there for as long as the call was given; it was not sent",
            who(peer));
    };
    if (!sent.place.is_next()) ROVE_CHECK(wait_in_large(lock, sent, wait));
    if (peer.sends.larges.begun() >= kLargesMax)
        return fail(ErrorCode::overloaded, "{} functions, one on top of the other's wait, send large payloads to {}",
                    peer.sends.larges.begun(), who(peer));
    sent.place.begin();
    return {};
}

Status Caller::send_in_parts(PeerState& peer, Lock& lock, LargeSend& sent) {
    const auto wait_for = [&](std::size_t bytes) REQUIRES(lock_of<EngineLock>) -> Status {
        lock.let_others();
        if (peer.meeting() == sent.meeting && !(peer.clear_way() && peer.link()->has_room(Traffic::calls, bytes)))
            ROVE_CHECK(wait_in_large(
                lock, sent, [&](Deadline deadline, Runner::Manner manner) REQUIRES(lock_of<EngineLock>) -> Status {
                    ROVE_CHECK(no_frame_begun(peer));
                    return rooms_.wait(peer, lock, Traffic::calls, bytes, deadline, manner);
                }));
        if (peer.meeting() == sent.meeting && peer.linked()) return {};
        return fail(ErrorCode::disconnected, "{} was lost while a call's arguments were on their way{}", who(peer),
                    because(peer.gone()));
    };
    const auto send_part = [&](std::size_t offset, Bytes piece) REQUIRES(lock_of<EngineLock>) -> Status {
        ROVE_CHECK(wait_for(wire::kHeaderBytes + sizeof(wire::Part) + piece.size()));
        if (sent.copy) piece = sent.copy->bytes().subspan(offset, piece.size());
        const wire::Part part{.number = sent.staged.number,
                              .offset = static_cast<std::uint32_t>(offset),
                              .total_bytes = static_cast<std::uint32_t>(sent.payload.size())};
        const std::uint32_t named = wire::handle_in_part(offset == 0 ? sent.handle : std::nullopt);
        return sender_.send(peer, Traffic::calls, {.kind = Kind::part, .handle = named, .node = peer.my_id()},
                            std::as_bytes(std::span(&part, 1)), piece);
    };
    Status all;
    (void)sent.payload.each_part(wire::kPartBytesMax, [&](std::size_t offset, Bytes piece) {
        engine_lock_is_held();
        all = send_part(offset, piece);
        return all.has_value();
    });
    if (!all) return all;
    return wait_for(wire::kHeaderBytes + sizeof(wire::Either) + sizeof(wire::Staged));  // for the call
}

// The payload is sent from its place, and a function on top of this wait could change it: therefore no function runs at first. But the peer
// may itself be waiting for a call that only this thread can run. So after a while the payload is copied, and then functions run.
template <typename Wait>
Status Caller::wait_in_large(Lock& lock, LargeSend& sent, const Wait& wait) {
    if (!sent.copy) {
        if (!sent.holds_back_until) sent.holds_back_until = Clock::now() + kLargeHoldsBackFor;
        const bool is_last = sent.deadline && *sent.deadline <= *sent.holds_back_until;
        Status done =
            wait(is_last ? sent.deadline : Deadline(sent.holds_back_until), {.holds_back = true, .large = &sent.place});
        if (done || is_last || done.error().code() != ErrorCode::timed_out) return done;
        ROVE_CHECK(keep_apart(lock, sent));
    }
    return wait(sent.deadline, {.large = &sent.place});
}

// Without the lock: what is large takes long.
Status Caller::keep_apart(Lock& lock, LargeSend& sent) {
    ROVE_TRY(LargeBytes copy, spare_memory_->take(sent.payload.size()));
    {
        const Unlocked free(lock);
        (void)sent.payload.each_part(wire::kPartBytesMax, [&copy](std::size_t offset, Bytes piece) {
            std::memcpy(copy.data() + offset, piece.data(), piece.size());
            return true;
        });
    }
    sent.copy = std::move(copy);
    return {};
}

// Tells the peer to drop the parts of a payload whose call will not be sent. If there is no memory for that, cuts the link, which has the
// same effect.
void Caller::take_back_parts(PeerState& peer, const LargeSend& sent) try {
    if (!peer.link() || peer.meeting() != sent.meeting) return;  // it has forgotten them already
    const wire::Part part{.number = sent.staged.number};
    (void)sender_.send(peer, Traffic::calls, {.kind = Kind::part, .node = peer.my_id()},
                       std::as_bytes(std::span(&part, 1)), {});
} catch (const std::bad_alloc&) {
    peer.link()->break_with(no_memory());
}

}  // namespace rove
