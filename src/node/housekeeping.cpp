// What is due by the clock, and what nobody waits for: calls whose time is over, links that have ended, memory to be given back.
#include <algorithm>

#include "node/core.hpp"
#include "node/gathering.hpp"
#include "node/names.hpp"

namespace rove {
namespace {

constexpr auto kHousekeepingEvery = std::chrono::milliseconds(20);
constexpr unsigned kHousekeepingSteps = 1024;

}  // namespace

// What is due by the clock, and what others wait for. Where a turn loses the lead to a function before it comes to that, the next one begins
// with it: otherwise a node whose functions are all long would never see to it.
unsigned NodeCore::tend(Lead::Turn& turn, unsigned handled) {
    unsigned tended = 0;
    if (calls_.first_deadline()) tended += end_late_calls();
    if (!room_waits_.empty()) tended += tell_of_room();
    // By frames, because a turn of many peers whose functions are slow takes long.
    housekeeping_in_ -= std::min(housekeeping_in_, 1 + handled);
    if (housekeeping_in_ == 0) {
        housekeeping_in_ = kHousekeepingSteps;
        if (const TimePoint now = Clock::now(); now >= housekeeping_due_) {
            housekeeping_due_ = now + kHousekeepingEvery;
            tended += housekeep(turn);
        }
    }
    if (!ready_.empty() && !lead_.lost(turn) && turn.runs_functions()) tended += tell_of_ends(turn);
    return tended;
}

unsigned NodeCore::end_late_calls() {
    unsigned ended = 0;
    const TimePoint now = Clock::now();
    while (calls_.first_deadline() && *calls_.first_deadline() <= now) {
        CallSlot* slot = calls_.flying(calls_.first());
        if (slot == nullptr) {
            calls_.drop_first();
            continue;
        }
        const auto asked =
            std::find_if(peers_.begin(), peers_.end(), [slot](const auto& peer) { return peer.get() == slot->peer; });
        slot->end(Error(ErrorCode::timed_out,
                        fmt::format("{} gave no answer within the time that the call was given; it may have run",
                                    asked != peers_.end() ? who(**asked) : name())));
        calls_.drop_first();  // not before it has ended, for which memory may be too short
        call_ended(*slot);
        ++ended;
    }
    return ended;
}

// What it changes counts as handled: somebody may wait for it, and must not sleep over it.
unsigned NodeCore::housekeep(Lead::Turn& turn) {
    unsigned changed = 0;
    const TimePoint now = Clock::now();
    const auto expire = [now, &changed](std::optional<Parked>& parked) {
        const std::optional<Error> why = parked ? parked->expired(now) : std::nullopt;
        if (!why) return;
        parked->cannot_run = why;
        ++changed;
    };
    expire(local_parked_);
    if (running_ == nullptr) buried_.clear();  // those that run beside the leader hold theirs
    for (std::size_t i = 0; i < peers_.size();) {
        const std::shared_ptr<PeerState> peer = peers_[i];
        expire(peer->parked);
        if (peer->lost && peer->link) {
            const fabric::Link* const gone = peer->link.get();
            const auto is_read = [&peer]() REQUIRES(lock_of<NodeLock>) {
                return peer->gathering != nullptr && peer->gathering->keeps_mailbox();
            };
            const bool was_read = is_read();
            (void)serve(*peer, turn);  // what it sent before it went still counts
            if (lead_.lost(turn)) return changed;
            // It may have been met again while a function ran; or a run has the mailbox, and what else it sent comes after that.
            if (peer->link.get() == gone && peer->lost && !was_read && !is_read()) clean_up(*peer);
            ++changed;
        }
        // One that nobody has a handle of is not needed: a client that comes back is a new one, and the others are met again by
        // their addresses.
        if (!peer->link && (is_client(peer->id) || peer.use_count() == 2))
            peers_.erase(peers_.begin() + static_cast<std::ptrdiff_t>(i));
        else
            ++i;
    }
    changed += cut_off_slow_senders(now);
    if (absent_.drop_old(now)) {
        housekeeping_due_ = {};
        housekeeping_in_ = 1;
        ++changed;
    }
    end_orphans();  // where memory was too short when they became that
    // Unmapping and freeing take long: without the lock, and with a look at the mailboxes between one step and the next.
    const bool doomed = memory_.has_doomed();
    if (doomed || !dropped_.is_empty() || spare_memory_->is_due(now)) {
        if (doomed || !dropped_.is_empty()) {
            housekeeping_due_ = {};
            housekeeping_in_ = 1;
            ++changed;
        }
        std::vector<ByteBuffer> dropped = dropped_.some();
        turn.lock.unlock();
        dropped.clear();
        if (doomed) memory_.sweep();
        spare_memory_->trim(now);
        turn.lock.lock();
    }
    return changed;
}

}  // namespace rove
