// What a leader owes a peer. All that decides whether a leader looks at a peer, may sleep, or need not look at the peer any more is stated here,
// once.
//
// Threads: under the engine's lock.
//
// No state: functions of a PeerState.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "lead/engine_lock.hpp"
#include "peer/peer_state.hpp"

namespace rove {

// How often a leader with nothing else to do looks whether senders that have begun a payload go on (Staging).
inline constexpr auto kStagingLook = std::chrono::milliseconds(100);

// The frames that a leader takes out of mailboxes: none while others have to be handled first; only prompt frames where it runs no functions.
enum class Takes : std::uint8_t { nothing, prompt, all };

// What a leader has to do for one peer, or for several.
struct PeerNeeds {
    bool now =
        false;  // there is a frame that it takes, or a link of which somebody knows that it is of no use any more
    bool room = false;  // frames wait for room in a mailbox, and the peer gives room without a signal
    bool look = false;  // something else that no signal announces is waited for
    bool may_lose_bell =
        false;  // peers on this machine ring one bell, and one of them could take from it what another has rung
    std::optional<TimePoint> until{};  // when it has to look at the latest

    void no_later_than(TimePoint limit) { until = until ? std::min(*until, limit) : limit; }
};

// Whether there may be something to do with it in this turn. Asked of each warm peer in every turn, so it is cheap.
inline bool has_work(const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    return peer.link() && (peer.link()->pending() || peer.has_frames_waiting() || peer.link()->broken() != nullptr);
}
inline bool waits_for_room(const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    return peer.link() && peer.link()->broken() == nullptr && peer.has_frames_waiting();
}
// Whether the leader looks at its calls: not while a run reads them, nor while the peer takes no answers.
inline bool looks_at_calls(const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    return !peer.has_backlog() && (peer.calls.reader() == nullptr || !peer.calls.reader()->keeps_mailbox());
}
// Whether the leader takes the next call. A call that was parked is taken first, and waits for something else than the mailbox.
inline bool takes_calls(const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    return !peer.calls.parked && !peer.calls.waits_to_stage() && looks_at_calls(peer);
}
// Whether nothing is to be done with it until something happens to its link: then the link may be cold.
inline bool is_quiet(const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    return !has_work(peer) && !peer.lost() && !peer.calls.parked && peer.calls.staged.is_empty() &&
           !peer.calls.waits_to_stage() && peer.calls.reader() == nullptr && !peer.sends.has_open_frame();
}

inline PeerNeeds needs_of(PeerState& peer, Takes takes, TimePoint now) REQUIRES(lock_of<EngineLock>) {
    PeerNeeds needs;
    const auto& link = peer.link();
    if (!link) return needs;
    const std::optional<Parked>& parked = peer.calls.parked;
    const bool calls_too = takes == Takes::all && takes_calls(peer);
    needs.now = peer.lost() || (takes != Takes::nothing && link->pending(calls_too));
    needs.room = waits_for_room(peer);
    needs.look = peer.calls.waits_to_stage() || (parked && !parked->waits_for_thread()) ||
                 (peer.calls.reader() != nullptr && peer.calls.reader()->is_called());
    needs.may_lose_bell = !link->by_messages();
    if (peer.awaits_goodbye(now)) needs.no_later_than(peer.goodbye_until());
    if (!peer.calls.staged.is_empty()) needs.no_later_than(now + kStagingLook);
    // A call that is held back is looked at again when it is to be refused. That time may have passed since the last look.
    if (takes == Takes::all && parked && looks_at_calls(peer))
        if (const std::optional<TimePoint> until = parked->held_until()) needs.no_later_than(*until);
    return needs;
}

}  // namespace rove
