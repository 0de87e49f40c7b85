#include "peer/payload_parts.hpp"

#include <algorithm>
#include <cstring>

#include "peer/names.hpp"

namespace rove {

using fabric::Traffic;

bool PayloadParts::add(PeerState& from, const wire::Frame& frame) {
    const auto part = wire::copy_of<wire::Part>(frame.extra);
    const auto wrong = [&from](std::string_view what) REQUIRES(lock_of<EngineLock>) {
        from.link()->break_with(Error(ErrorCode::invalid, fmt::format("{} sent a part {}", who(from), what)));
        return false;
    };
    if (const std::string_view fault = wire::wrong_part(part, frame.payload.size(), /*among_calls=*/true);
        !fault.empty())
        return wrong(fault);
    if (part.total_bytes == 0) {  // it was taken back
        forget(from, part.number);
        return true;
    }
    if (part.offset == 0) {
        if (from.calls.staged.contains(part.number)) return wrong("of a payload that has begun already");
        const std::size_t room = SpareMemory::room_for(part.total_bytes);
        if (!from.calls.staged.may_begin(room)) return wrong("beyond what may arrive at once");
        // All peers together have as many payloads on their way here as may be: this one waits in its mailbox.
        from.calls.set_waits_to_stage(bytes_ + room > kAllStagedBytesMax);
        if (from.calls.waits_to_stage()) return false;
        Result<LargeBytes> place = memory_->take(part.total_bytes);
        if (!place) {
            from.link()->break_with(Error(ErrorCode::overloaded, name_() + ": " + place.error().message()));
            return false;
        }
        from.calls.staged.begin(part.number, std::move(*place), Clock::now());  // first: there may be no memory
        bytes_ += room;
    }
    return from.calls.staged.add(part, frame.payload) || wrong("of no payload that has begun, or out of its order");
}

std::optional<LargeBytes> PayloadParts::take(PeerState& from, const wire::Staged& which) {
    std::optional<LargeBytes> payload = from.calls.staged.take(which);
    if (payload) bytes_ -= payload->room();
    return payload;
}

unsigned PayloadParts::cut_off_slow_senders(TimePoint now) {
    const bool room_wanted = std::ranges::any_of(peers_.warm(), [](const PeerState* peer) {
        engine_lock_is_held();
        return peer->link() && peer->calls.waits_to_stage();
    });
    unsigned cut = 0;
    for (PeerState* const peer : peers_.warm()) {
        if (!peer->linked() || peer->calls.staged.is_empty()) continue;
        const std::uint64_t taken = peer->link()->lines_read(Traffic::calls);
        const bool goes_on = peer->calls.note_progress(taken);
        const bool kept = peer->link()->keeps_back(Traffic::calls);
        const bool waits = peer->link()->pending() && !goes_on && !peer->owes_code() && !peer->has_backlog();
        const auto next = peer->calls.waits_to_stage() ? Staging::Next::waits_here
                          : kept || waits              ? Staging::Next::other
                                                       : Staging::Next::nothing;
        if (const auto what = peer->calls.staged.too_slow(now, next, room_wanted)) {
            peer->link()->break_with(Error(ErrorCode::overloaded, fmt::format("{} {}", who(*peer), *what)));
            ++cut;
        }
    }
    return cut;
}

bool PayloadParts::may_begin_elsewhere(const PeerState& from, const wire::Part& first) const {
    return !from.calls.staged.contains(first.number) && from.calls.staged.may_begin(first.total_bytes) &&
           bytes_ + first.total_bytes <= kAllStagedBytesMax;
}

void PayloadParts::begin_elsewhere(PeerState& from, const wire::Part& first, TimePoint now) {
    from.calls.staged.begin_elsewhere(first.number, first.total_bytes, now);  // first: there may be no memory
    bytes_ += first.total_bytes;
}

}  // namespace rove
