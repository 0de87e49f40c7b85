#include "engine/turns.hpp"

#include <algorithm>
#include <optional>

#include "engine/gathering.hpp"

namespace rove {

namespace {

// Peers that share memory ring one bell and have one board, and one of them could take from these what another has written there: so the leader of
// a node that is not idle looks this often without.
constexpr auto kSleepMax = std::chrono::milliseconds(100);
// A link over which nothing has come or gone for this long is cold.
constexpr auto kCoolAfter = std::chrono::milliseconds(100);
// How long streams wait for a leader that is busy, or reads.
constexpr auto kProgressEvery = std::chrono::microseconds(200);
// The number of steps after which a fabric progresses even if its links do not need it: it may have connections to open and close.
constexpr unsigned kProgressSteps = 64;
// How many cold mailboxes are looked at at once. A look takes 0.3 us, and others wait for the lock.
constexpr std::size_t kColdLooksMax = 512;
// Links that are looked at in a second, whether they may give memory back: half of all, so that they do so a few seconds after they were used.
constexpr std::size_t kTendedMin = 256;
// … and at once.
constexpr std::size_t kTendedAtOnce = 256;
// Of how many peers each housekeeping asks whether anybody needs them.
constexpr std::size_t kUnneededLooks = 64;

}  // namespace

// Handles the frames that have arrived; if there are none, lets the fabric progress.
// A step that finds no memory is left undone and repeated in the next turn: it costs neither the lead nor the process.
unsigned Turns::work(Lead::Turn& turn) try {
    lead_.wakes().begin_work();
    unsigned handled = 0;
    if (was_cut_short_) handled = tend(turn, 0);
    take_warmed(*fabric_);
    if (!lead_.lost(turn)) handled += serve_all(turn);
    if (!lead_.lost(turn) && progress_is_due(handled)) {
        progress_in_ = kProgressSteps;
        if (fabric_->progress() > 0) {
            take_warmed(*fabric_);
            handled += 1 + serve_all(turn);
        }
    }
    if (left_.has_any() && !lead_.lost(turn)) handled += left_.take();
    if (!local_.is_empty() && !lead_.lost(turn) && turn.runs_functions()) handled += dispatcher_.serve_local(turn);
    was_cut_short_ = lead_.lost(turn);
    if (!was_cut_short_) handled += tend(turn, handled);
    return handled;
} catch (const std::bad_alloc&) {
    if (!turn.lock.owns_lock()) turn.lock.lock();
    housekeeping_.hurry();
    return 1;
}

// Streams are read when no frame has arrived, and in intervals while functions run: one busy peer must not keep others' frames
// in their sockets.
bool Turns::progress_is_due(unsigned handled) {
    if (--progress_in_ == 0) return true;
    if (!fabric_->needs_progress()) return false;
    const TimePoint now = Clock::now();
    if (handled > 0 && now - progressed_at_ < kProgressEvery) return false;
    progressed_at_ = now;
    return true;
}

unsigned Turns::serve_all(Lead::Turn& turn) {
    unsigned handled = 0;
    // By index: the lock is released while a function runs, and peers may be added then. Only the leader takes peers away. It starts
    // with the peer after the one served last; otherwise the first peer would get every free place for long functions.
    const WarmPeers& peers = peers_.warm();
    const std::size_t first = served_first_ < peers.size() ? served_first_ : 0;
    for (std::size_t i = 0; i < peers.size() && !lead_.lost(turn); ++i) {
        const std::size_t at = first + i < peers.size() ? first + i : first + i - peers.size();
        if (at >= peers.size()) break;  // some were taken away while a function ran
        if (!has_work(peers[at])) continue;
        if (left_.must_wait()) break;
        const std::size_t before = std::exchange(served_first_, at + 1);  // now: the lead may be lost in there
        const unsigned of_peer = dispatcher_.serve(peers[at], turn);
        if (of_peer == 0 && !lead_.lost(turn)) served_first_ = before;
        handled += of_peer;
    }
    return handled;
}

// Without memory for the list it awaits none, and sleeps sooner.
void Turns::await_signals(Lead::Turn& turn) noexcept try {
    if (!turn.awaited) turn.awaited = std::make_unique<AwaitedSignals>();
    AwaitedSignals& awaited = *turn.awaited;
    if (awaited.version != peers_.links_version()) {
        awaited.version = peers_.links_version();
        awaited.links.clear();
        peers_.warm().add_links(awaited.links);
    }
    awaited.cold_word = fabric_->cold_word();
    awaited.signals.clear();
    peers_.warm().await(awaited.signals, turn.runs_functions() ? Takes::all : Takes::prompt);
} catch (const std::bad_alloc&) {
    turn.drop_awaited();
}

bool Turns::waits_for_room() const {
    return !rooms_.is_empty() || peers_.warm().any_waits_for_room();
}

Lead::Rest Turns::rest(const Lead::Turn& turn) {
    const TimePoint now = Clock::now();
    const bool must_wait = left_.must_wait(), runs = turn.runs_functions();
    PeerNeeds needs = peers_.warm().needs(must_wait ? Takes::nothing : runs ? Takes::all : Takes::prompt, now);
    needs.add(needs_of(local_.parked(), runs));
    // For an idle node the control thread looks each second (look_for_missed).
    if ((needs.may_lose_bell || fabric_->has_cold_on_board()) && !turn.is_idle) needs.no_later_than(now + kSleepMax);
    if (const auto board = fabric_->warmed_not_before(now)) needs.no_later_than(*board);
    if (!spare_memory_->is_empty()) needs.no_later_than(now + kSpareFor);
    if (const auto first = own_calls_.first_deadline()) needs.no_later_than(*first);
    if (const auto due = absent_.drop_due()) needs.no_later_than(*due);
    const bool local_waits = !local_.is_empty() && !local_.parked() && runs;
    const bool tells_of_ends = own_calls_.has_ends_to_tell() && runs && !ThreadRuns::is_deep();
    return {.pending = needs.now || local_waits || left_.has_any() || fabric_->may_have_warmed(now) || tells_of_ends,
            .restless = needs.room || needs.look || !rooms_.is_empty() || must_wait,
            .until = needs.until};
}

// A leader that is awake looks by itself. One that is in a function, or sleeps, does not.
std::size_t Turns::look_at_cold_of_idle(std::size_t left) {
    if (!fabric_->has_cold_on_board() || Clock::now() - looked_at_cold_at_ < 2 * kCoolAfter) return 0;
    left = std::min(left, fabric_->cold_count());
    const std::size_t some = std::min(left, kColdLooksMax);
    fabric_->look_at_cold(some);
    return left - some;
}

void Turns::look_for_missed() {
    // Where no thread leads nobody else reads the streams: what has come, such as credit, is taken from the socket, and no function runs.
    const bool arrived = fabric_->needs_progress() && !lead_.is_led() && fabric_->progress() > 0;
    const TimePoint now = Clock::now();
    if (arrived || fabric_->may_have_warmed(now) || peers_.warm().any_has_lost_its_bell(now)) lead_.wake();
}

std::size_t Turns::tend_memory(std::size_t left) {
    std::optional<std::size_t> unneeded;
    bool has_freed = false;
    const std::size_t peers = peers_.all().size();
    left = std::min({left, peers, std::max(kTendedMin, peers / 2)});
    for (std::size_t some = std::min(left, kTendedAtOnce); some > 0 && !has_freed; --some, --left, ++tended_) {
        if (tended_ >= peers_.all().size()) tended_ = 0;
        // Not a copy of the pointer: to count it up and down takes as long as the whole look.
        PeerState& peer = *peers_.all()[tended_];
        has_freed = peer.link() && !peer.sends.has_begun_frames() && peer.link()->tend_memory();
        if (!unneeded && !peer.link() && Peers::is_unneeded(peer.shared_from_this())) unneeded = tended_;
    }
    if (unneeded) {
        pruned_ = *unneeded;
        lead_.wake();
    }
    return left;
}

void Turns::woke_up() {
    progress_in_ = 1;
    housekeeping_.look_soon();
}

bool Turns::runs_function() const {
    return runner_.leading() != nullptr;
}

void Turns::take_function_away() noexcept {
    runner_.take_away();
}

void Turns::follower_came() {
    if (runner_.has_no_place()) lead_.wake();
}

// ---- what is due by the clock, and what nobody waits for

// Does the work that is due by the clock or that others wait for. If a turn loses the lead to a function before this, the next turn begins
// with it: otherwise a node with long functions only would never do it.
unsigned Turns::tend(Lead::Turn& turn, unsigned handled) {
    unsigned tended = 0;
    runner_.code().let_go();
    if (own_calls_.first_deadline()) tended += own_calls_.end_late();
    if (!rooms_.is_empty()) tended += rooms_.tell();
    if (housekeeping_.advance(handled)) tended += housekeep(turn);
    if (own_calls_.has_ends_to_tell() && !lead_.lost(turn) && turn.runs_functions())
        tended += own_calls_.tell_of_ends(turn);
    return tended;
}

// Returns how many have.
static unsigned expire(std::optional<Parked>& parked, TimePoint now) {
    std::optional<Error> why = parked ? parked->expired(now) : std::nullopt;
    if (!why) return 0;
    parked->refuse(std::move(*why));
    return 1;
}

unsigned Turns::look_after(const std::shared_ptr<PeerState>& peer, TimePoint now, Lead::Turn& turn) {
    unsigned changed = expire(peer->calls.parked, now);
    if (!peer->lost()) return changed;
    const fabric::Link* const gone = peer->link().get();
    const bool was_read = is_read_by_a_run(*peer);
    (void)dispatcher_.serve(*peer, turn);  // what it sent before it went still counts
    if (lead_.lost(turn)) return changed;
    // It may have been met again while a function ran; or a run has the mailbox, and what else it sent is served after that.
    if (peer->link().get() == gone && peer->lost() && !was_read && !is_read_by_a_run(*peer)) link_ends_.clean_up(*peer);
    return changed + 1;
}

// At each once in kCoolAfter, unless there are too many for that.
void Turns::look_at_cold(TimePoint now) {
    const std::chrono::nanoseconds since = now - std::exchange(looked_at_cold_at_, now), all = kCoolAfter;
    if (!fabric_->has_cold_on_board()) return;
    const auto due = static_cast<std::size_t>(std::min(since, all).count()) * fabric_->cold_count();
    fabric_->look_at_cold(std::min(due / static_cast<std::size_t>(all.count()) + 1, kColdLooksMax));
    take_warmed(*fabric_);
}

// Removes some of the peers that nobody needs any more. Returns how many.
unsigned Turns::prune() {
    unsigned removed = 0;
    for (std::size_t left = std::min(peers_.all().size(), kUnneededLooks); left > 0; --left) {
        if (pruned_ >= peers_.all().size()) pruned_ = 0;
        const std::shared_ptr<PeerState> peer = peers_.all()[pruned_];
        if (peers_.remove_unneeded(pruned_, peer))
            ++removed;
        else
            ++pruned_;
        if (peers_.all().size() == 0) break;
    }
    if (removed > 0) housekeeping_.hurry();  // thousands may have left at once, and others want their places
    return removed;
}

// What no frame announces: frames whose bit another peer has cleared, and links that are quiet.
void Turns::look_at_cold_and_cool(TimePoint now) {
    look_at_cold(now);
    if (now - cooled_at_ < kCoolAfter) return;
    cooled_at_ = now;
    peers_.warm().cool_quiet(*fabric_);
}

// Returns its changes as handled events: a thread may wait for one of them, and must look again before it sleeps.
unsigned Turns::housekeep(Lead::Turn& turn) {
    unsigned changed = 0;
    const TimePoint now = Clock::now();
    changed += expire(local_.parked(), now);
    if (runner_.leading() == nullptr) link_ends_.drop_buried();  // those that run beside the leader hold theirs
    for (std::size_t i = 0; i < peers_.warm().size(); ++i) {
        changed += look_after(peers_.warm()[i].shared_from_this(), now, turn);
        if (lead_.lost(turn)) return changed;
    }
    changed += prune();
    look_at_cold_and_cool(now);
    changed += payload_parts_.cut_off_slow_senders(now);
    if (absent_.drop_old(now)) {
        housekeeping_.hurry();
        ++changed;
    }
    link_ends_.end_orphans();  // where memory was too short when they became that
    return changed + give_back_memory(turn, now);
}

// Unmapping and freeing take long: without the lock, and with a look at the mailboxes between one step and the next.
unsigned Turns::give_back_memory(Lead::Turn& turn, TimePoint now) {
    const bool at_work = std::ranges::any_of(services_, &Service::has_work), dropped = !link_ends_.dropped().is_empty();
    if (!at_work && !dropped && !spare_memory_->is_due(now)) return 0;
    if (at_work || dropped) housekeeping_.hurry();
    std::vector<ByteBuffer> some = link_ends_.dropped().some();
    {
        const Unlocked free(turn.lock);
        some.clear();
        for (Service* const service : services_)
            if (service->has_work()) service->work();
        spare_memory_->trim(now);
    }
    return at_work || dropped ? 1 : 0;
}

// ---- for a run that reads its payload while it leads

bool Turns::others_wait(const PeerState& read, TimePoint now) {
    if (lead_.wakes().was_woken() || own_calls_.has_ends_to_tell() || !rooms_.is_empty() || !local_.is_empty() ||
        left_.has_any())
        return true;
    if (const auto first = own_calls_.first_deadline(); first && *first <= now) return true;
    if (fabric_->may_have_warmed(now)) return true;
    if (peers_.warm().any_needs_more_than(read, now)) return true;
    if (!fabric_->needs_progress() || now - progressed_at_ < kProgressEvery) return false;
    progressed_at_ = now;
    return fabric_->progress() > 0;
}

}  // namespace rove
