// One turn of the thread that leads: what it does, and how long it may rest.
#include <algorithm>

#include "node/core.hpp"
#include "node/gathering.hpp"
#include "node/running.hpp"

namespace rove {

namespace {

// Peers that share memory ring one bell, and one of them could read what another has written into it: a frame is seen this soon
// without.
constexpr auto kSleepMax = std::chrono::milliseconds(100);
// How long streams wait for a leader that is busy.
constexpr auto kProgressEvery = std::chrono::microseconds(200);
// How often a fabric whose links need no progress makes some all the same: it may have connections to open and close.
constexpr unsigned kProgressSteps = 64;

}  // namespace

// What has arrived first, and the fabric's progress where nothing has: spinning may just have made it.
// What finds no memory is left as it is, and begun again in the next turn: it costs neither the lead nor the process.
unsigned NodeCore::work(Lead::Turn& turn) try {
    lead_.begin_work();
    unsigned handled = 0;
    if (turn_was_cut_short_) handled = tend(turn, 0);
    if (!lead_.lost(turn)) handled += serve_all(turn);
    if (!lead_.lost(turn) && progress_is_due(handled)) {
        progress_in_ = kProgressSteps;
        if (fabric_->progress() > 0) handled += 1 + serve_all(turn);
    }
    if (!local_.empty() && !lead_.lost(turn) && turn.runs_functions()) handled += serve_local(turn);
    turn_was_cut_short_ = lead_.lost(turn);
    if (!turn_was_cut_short_) handled += tend(turn, handled);
    return handled;
} catch (const std::bad_alloc&) {
    if (!turn.lock.owns_lock()) turn.lock.lock();
    housekeeping_due_ = {};
    housekeeping_in_ = 1;
    return 1;
}

// Streams are read when nothing has come, and in between where functions take long: one busy peer must not keep others' frames
// in their sockets.
bool NodeCore::progress_is_due(unsigned handled) {
    if (--progress_in_ == 0) return true;
    if (!fabric_->needs_progress()) return false;
    const TimePoint now = Clock::now();
    if (handled > 0 && now - progressed_at_ < kProgressEvery) return false;
    progressed_at_ = now;
    return true;
}

unsigned NodeCore::serve_all(Lead::Turn& turn) {
    unsigned handled = 0;
    // By index: a function that runs lets go of the lock, and peers may be added meanwhile. Only the leader takes peers away. It starts
    // with the peer after the one served last; otherwise the first peer would get every free place for long functions.
    const std::size_t first = served_first_ < peers_.size() ? served_first_ : 0;
    for (std::size_t i = 0; i < peers_.size() && !lead_.lost(turn); ++i) {
        const std::size_t at = first + i < peers_.size() ? first + i : first + i - peers_.size();
        if (!peers_[at]->has_work()) continue;
        const std::size_t before = std::exchange(served_first_, at + 1);  // now: the lead may be lost in there
        const unsigned of_peer = serve(*peers_[at], turn);
        if (of_peer == 0 && !lead_.lost(turn)) served_first_ = before;
        handled += of_peer;
    }
    return handled;
}

// Without memory for the list it watches nothing, and sleeps sooner.
void NodeCore::watch(Lead::Turn& turn) noexcept try {
    Watch& watch = turn.watch;
    if (watch.version != links_version_) {
        watch.version = links_version_;
        watch.links.clear();
        for (const auto& peer : peers_)
            if (peer->link) watch.links.push_back(peer->link);
    }
    watch.signals.clear();
    for (const auto& peer :
         peers_)  // a parked call is there already: what it waits for comes among replies, or with a wake()
        if (peer->link) peer->link->await(watch.signals, takes_calls(*peer) && turn.runs_functions());
} catch (const std::bad_alloc&) {
    turn.watch.clear();
}

bool NodeCore::waits_for_room() const {
    return !room_waits_.empty() || std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) {
        return peer->link && peer->link->broken() == nullptr && peer->has_frames_waiting();
    });
}

Lead::Rest NodeCore::rest(const Lead::Turn& turn) {
    Lead::Rest rest;
    const auto no_later = [&rest](TimePoint limit) { rest.until = rest.until ? std::min(*rest.until, limit) : limit; };
    // A call that is held back is looked at again when it is to be refused. That time may have passed since the last look.
    const auto no_later_than_held = [&](const std::optional<Parked>& parked) {
        if (parked && parked->held_until) no_later(*parked->held_until);
    };
    if (turn.runs_functions()) no_later_than_held(local_parked_);
    rest.restless = (local_parked_ && !local_parked_->for_thread) || !room_waits_.empty();
    rest.pending = !local_.empty() && !local_parked_ && turn.runs_functions();
    for (const auto& peer : peers_) {
        if (!peer->link) continue;
        const bool ended = peer->link->broken() != nullptr;
        const bool sends = !ended && peer->has_frames_waiting();
        if (ended && awaits_goodbye(*peer)) no_later(*peer->broken_since + kGoodbyeWait);
        rest.restless = rest.restless || sends || peer->waits_to_stage || (peer->parked && !peer->parked->for_thread) ||
                        (peer->gathering != nullptr && peer->gathering->is_called());
        rest.pending = rest.pending || peer->lost || peer->link->pending(takes_calls(*peer) && turn.runs_functions());
        if (turn.runs_functions() && looks_at_calls(*peer)) no_later_than_held(peer->parked);
        if (!peer->link->by_messages() || !peer->staged.is_empty()) no_later(Clock::now() + kSleepMax);
    }
    rest.pending = rest.pending || (!ready_.empty() && turn.runs_functions() && !is_deep());
    if (!spare_memory_->is_empty()) no_later(Clock::now() + kSpareFor);
    if (const auto first = calls_.first_deadline()) no_later(*first);
    if (const auto due = absent_.drop_due()) no_later(*due);
    return rest;
}

void NodeCore::woke_up() {
    progress_in_ = housekeeping_in_ = 1;
}

void NodeCore::follower_came() {
    if (long_runs_ >= options_.threads) lead_.wake();
}

// The fast path: the result comes through shared memory, while this thread spins, as the next frame from the peer. Then the slot
// need not hold it. Nothing: it came otherwise, and is to be waited for as ever.
std::optional<std::size_t> NodeCore::finish_at_once(Lock& lock, CallTable::Id id, std::span<std::byte> into) {
    if (in_user_code_.core == this) return std::nullopt;
    if (no_nesting_ > 0 || !lead_.is_free() || options_.waiting == Waiting::frugal || fabric_->needs_progress())
        return std::nullopt;
    const CallSlot* slot = calls_.flying(id);
    if (slot == nullptr || slot->peer == nullptr || !slot->peer->link) return std::nullopt;
    Lead::Turn turn{.lock = lock, .baton = {.own = false}};
    lead_.begin_wait();
    lead_.take(turn);
    watch(turn);
    (void)lead_.spin(turn);
    if (lead_.lost(turn)) return std::nullopt;
    std::optional<std::size_t> size;
    wire::Frame frame;
    slot = calls_.flying(id);  // another thread may have ended it meanwhile
    PeerState* peer = slot != nullptr ? slot->peer : nullptr;
    if (peer != nullptr && peer->link && peer->link->next(fabric::Traffic::replies, frame) &&
        peer->sends_plain_reply(frame) && frame.header.call == id.slot && frame.header.generation == id.generation &&
        frame.payload.size() <= into.size()) {
        copy_bytes(into.data(), frame.payload.data(), frame.payload.size());
        size = frame.payload.size();
        peer->link->release(fabric::Traffic::replies);
    }
    lead_.give(turn);
    return size;
}

}  // namespace rove
