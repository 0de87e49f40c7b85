// What a leader owes a peer: whether it looks at the peer, may sleep, or need not look at the peer any more.
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

// What a leader has to do for one peer, or for several, or for the calls that the node has sent to itself.
struct PeerNeeds {
    // There is a frame that it takes, or a link of which somebody knows that it is of no use any more.
    bool now = false;
    // Frames wait for room in a mailbox: the peer gives room without a signal.
    bool room = false;
    // A call waits for something else of which the leader gets no signal.
    bool look = false;
    // Peers on this machine ring one bell, and one of them could take from it what another has rung.
    bool may_lose_bell = false;
    // When it has to look at the latest.
    std::optional<TimePoint> until{};

    void no_later_than(TimePoint limit) { until = until ? std::min(*until, limit) : limit; }
    void add(const PeerNeeds& more) {
        now = now || more.now;
        room = room || more.room;
        look = look || more.look;
        may_lose_bell = may_lose_bell || more.may_lose_bell;
        if (more.until) no_later_than(*more.until);
    }
    // Nothing is to be done until something happens to the link.
    [[nodiscard]] bool are_none() const { return !now && !room && !look && !until; }
};

// Whether there may be something to do with it in this turn. Asked of each warm peer in every turn, so it is cheap.
inline bool has_work(const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    return peer.link() && (peer.link()->pending() || peer.has_frames_waiting() || peer.link()->broken() != nullptr);
}
inline bool waits_for_room(const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    return peer.link() && peer.link()->broken() == nullptr && peer.has_frames_waiting();
}
// Whether a run reads its calls, so that the leader must not.
inline bool is_read_by_a_run(const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    return peer.calls.reader() != nullptr && peer.calls.reader()->keeps_mailbox();
}
// Whether the leader looks at its calls: not while a run reads them, nor while the peer takes no answers.
inline bool looks_at_calls(const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    return !peer.has_backlog() && !is_read_by_a_run(peer);
}
// Whether the leader takes the next call. A call that was parked is taken first, and waits for something else than the mailbox.
inline bool takes_calls(const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    return !peer.calls.parked && !peer.calls.waits_to_stage() && looks_at_calls(peer);
}

// Of a call that is parked. One that is held back is looked at again when it is to be refused; that time may have passed since the last look.
inline PeerNeeds needs_of(const std::optional<Parked>& parked, bool takes_it) {
    PeerNeeds needs{.look = parked && !parked->waits_for_thread()};
    if (parked && takes_it) needs.until = parked->held_until();
    return needs;
}

inline PeerNeeds needs_of(PeerState& peer, Takes takes, TimePoint now) REQUIRES(lock_of<EngineLock>) {
    const auto& link = peer.link();
    if (!link) return {};
    PeerNeeds needs = needs_of(peer.calls.parked, takes == Takes::all && looks_at_calls(peer));
    needs.now = peer.lost() || (takes != Takes::nothing && link->pending(takes == Takes::all && takes_calls(peer)));
    needs.room = waits_for_room(peer);
    needs.look = needs.look || peer.calls.waits_to_stage() ||
                 (peer.calls.reader() != nullptr && peer.calls.reader()->is_called());
    needs.may_lose_bell = !link->by_messages();
    if (peer.awaits_goodbye(now)) needs.no_later_than(peer.goodbye_until());
    if (!peer.calls.staged.is_empty()) needs.no_later_than(now + kStagingLook);
    return needs;
}

// Whether its link may be cold. What a run reads, or a thread has begun to send, goes on without a signal of the link's.
inline bool may_cool(PeerState& peer, TimePoint now) REQUIRES(lock_of<EngineLock>) {
    return peer.link() && !has_work(peer) && needs_of(peer, Takes::all, now).are_none() && !peer.calls.parked &&
           peer.calls.reader() == nullptr && !peer.sends.has_open_frame();
}

}  // namespace rove
