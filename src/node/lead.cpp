// Leading: who drains the mailboxes, how long it spins when nothing comes, when it sleeps, and how the lead changes hands.
#include <cxxabi.h>
#include <sched.h>

#include <algorithm>

#include "base/stack.hpp"
#include "node/control/control.hpp"
#include "node/core.hpp"
#include "node/gathering.hpp"
#include "node/names.hpp"
#include "node/running.hpp"
#include "rove/edge.h"

namespace rove {

constinit thread_local NodeCore::InUserCode NodeCore::in_user_code_;
constinit thread_local unsigned NodeCore::nested_ = 0;
constinit thread_local unsigned NodeCore::no_nesting_ = 0;

namespace {

// How long a leader that found nothing by spinning yields between looks before it sleeps.
constexpr auto kYieldFor = std::chrono::microseconds(100);
// A yield that nobody took takes 0.3 to 0.5 us here; one that switches to another thread and back 2 us and more.
constexpr auto kYieldAlone = std::chrono::nanoseconds(1500);
// With frames that wait for credit, or parked ones, nobody rings: look again this soon.
constexpr auto kShortSleep = std::chrono::milliseconds(1);
// Peers that share memory ring one bell, and one of them could read what another has written into it: a frame is seen this soon
// without.
constexpr auto kSleepMax = std::chrono::milliseconds(100);
// How long streams wait for a leader that is busy.
constexpr auto kProgressEvery = std::chrono::microseconds(200);
// How often a leader whose frames wait for room looks again at once, and then, yielding, before it sleeps.
constexpr unsigned kCrowdedSteps = 200;
// A look at the streams' sockets takes as long as this many looks at a mailbox.
constexpr unsigned kTurnsPerProgress = 10;
constexpr unsigned kSpinTurnsFrugal = 64;
// How often a fabric whose links need no progress makes some all the same: it may have connections to open and close.
constexpr unsigned kProgressSteps = 64;
// How often the follower on watch looks at the leader. A function is long when it is seen at two looks, so after one to two
// of these. 2,000 looks a second cost 0.5 % of a core, and a spinning leader is pushed aside for 3 us at most of them.
constexpr auto kWatchEvery = code::Pace::kShort;
// While the leader sleeps. To be woken with it would cost the call that wakes it; this costs 0.1 % of a core.
constexpr auto kWatchAsleepEvery = std::chrono::milliseconds(10);
// How often the thread that stands by looks whether anybody else is there. It is the last one, and seldom needed: 20 looks a second.
constexpr auto kStandbyEvery = std::chrono::milliseconds(50);

}  // namespace

void NodeCore::take_lead(Lead& lead) {
    const Baton::Tell whom = baton_.take(lead.turn);
    if (whom.sleeper) fabric_->end_sleep();
    tell(whom);
    lead.watch = std::exchange(spare_watch_, {});
}

void NodeCore::tell_all_of(Baton::Tell whom) {
    if (whom.waiting) changed_.notify_all();
    if (whom.follower) followers_changed_.notify_one();
    if (whom.sleeper) sleeper_.kick();
}

void NodeCore::give_lead(Lead& lead) {
    spare_watch_ = std::move(lead.watch);
    tell(baton_.give(lead.turn));
}

// What has arrived first, and the fabric's progress where nothing has: spinning may just have made it.
// What finds no memory is left as it is, and begun again in the next turn: it costs neither the lead nor the process.
unsigned NodeCore::work(Lead& lead) try {
    attention_.store(false, std::memory_order_relaxed);
    unsigned handled = 0;
    if (turn_was_cut_short_) handled = tend(lead, 0);
    if (!lost(lead)) handled += serve_all(lead);
    if (!lost(lead) && progress_is_due(handled)) {
        progress_in_ = kProgressSteps;
        if (fabric_->progress() > 0) handled += 1 + serve_all(lead);
    }
    if (!local_.empty() && !lost(lead) && lead.runs_functions()) handled += serve_local(lead);
    turn_was_cut_short_ = lost(lead);
    if (!turn_was_cut_short_) handled += tend(lead, handled);
    return handled;
} catch (const std::bad_alloc&) {
    if (!lead.lock.owns_lock()) lead.lock.lock();
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

unsigned NodeCore::tell_of_ends(Lead& lead) {
    unsigned told = 0;
    while (!ready_.empty() && !lost(lead) && !is_deep()) {
        CallSlot* const slot = calls_.find(ready_.front());
        ready_.pop_front();
        if (slot == nullptr || slot->notify == nullptr) continue;  // forgotten, or taken back, since it ended
        const auto notify = std::exchange(slot->notify, nullptr);
        void* const argument = slot->notify_argument;
        Run callback{.watch = &lead.watch, .on_own_thread = lead.turn.own};
        begin_run(callback);
        go_beneath(lead);
        const InUserCode outer = std::exchange(in_user_code_, {this, lead.turn.term, &callback});
        lead.lock.unlock();
        try {
            call_out(callback, [&] { notify(argument); });
        } catch (const abi::__forced_unwind&) {
            keep_thread(nullptr);
        } catch (...) {  // of a coroutine that lets it out where it is resumed
            rove_report_caught("what waited for a call");
        }
        stay_in_parent("a callback");
        lead.lock.lock();
        in_user_code_ = outer;
        come_up(lead);
        end_run(callback);
        ++told;
    }
    tell_waiting();  // some wait for what was done there
    return told;
}

// As many functions and callbacks wait in this thread, one on top of the other, as may: where others can run what comes, it runs nothing
// more on top of them.
bool NodeCore::is_deep() {
    return nested_ > 0 && (nested_ >= kNestedMax || stack_left() < kStackReserveBytes);
}

// Before a thread waits in a function or in what tell_of_ends() called: it leads no more, and can lead again while it waits. To
// the function it is as if it ran long. True: nobody has been told of it, and whoever calls this sees to it that somebody leads: see
// lead_until, look_once and keep_thread.
bool NodeCore::step_aside() {
    if (!runs_as_leader()) return false;
    running_->begun = Clock::now();
    set_aside(*running_);
    baton_.hand_over();
    return true;
}

// For a thread that asks whether its call has ended and does not wait. Outside of functions nothing need be done for it: the node's
// threads serve. A function that asks again and again must not keep the lead meanwhile.
void NodeCore::look_once(Lock& lock) {
    if (in_user_code_.core != this && own_threads_ > 0) return;
    step_aside();
    const bool is_beneath = in_user_code_.core == this;
    if (is_beneath) in_user_code_.run->noticed.reset();  // it waits for a call, and for no lock
    const Baton::Asked asked = baton_.ask();
    tell(asked.tell);
    if (!asked.leads) return;
    Lead lead{.lock = lock, .turn = {.own = false, .quiet = no_nesting_ > 0 || is_deep()}};
    nested_ += is_beneath ? 1 : 0;
    take_lead(lead);
    (void)work(lead);
    if (!lost(lead)) give_lead(lead);
    nested_ -= is_beneath ? 1 : 0;
}

unsigned NodeCore::serve_all(Lead& lead) {
    unsigned handled = 0;
    // By index: a function that runs lets go of the lock, and peers may be added meanwhile. Only the leader takes peers away. It starts
    // with the peer after the one served last; otherwise the first peer would get every free place for long functions.
    const std::size_t first = served_first_ < peers_.size() ? served_first_ : 0;
    for (std::size_t i = 0; i < peers_.size() && !lost(lead); ++i) {
        const std::size_t at = first + i < peers_.size() ? first + i : first + i - peers_.size();
        if (!peers_[at]->has_work()) continue;
        const std::size_t before = std::exchange(served_first_, at + 1);  // now: the lead may be lost in there
        const unsigned of_peer = serve(*peers_[at], lead);
        if (of_peer == 0 && !lost(lead)) served_first_ = before;
        handled += of_peer;
    }
    return handled;
}

unsigned NodeCore::lead_step(Lead& lead, std::optional<TimePoint> deadline) {
    baton_.begin_step(lead.turn);
    const unsigned handled = work(lead);
    idle_steps_ += handled == 0 ? 1 : 0;
    if (handled > 0)
        crowded_steps_ = 0;
    else if (!lost(lead) && !(deadline && Clock::now() >= *deadline))
        idle(lead, deadline);
    if (!lost(lead)) make_way(lead);
    return handled;
}

// Without this a busy leader would keep everybody else out.
void NodeCore::make_way(Lead& lead) {
    if (!mutex_.is_wanted()) return;
    baton_.pause();
    lead.lock.unlock();
    mutex_.let_in();
    lead.lock.lock();
    (void)baton_.resume(lead.turn);
}

// Spins, then yields, then sleeps; comes back when there may be something to do. Spinning is right while nobody else wants
// the core, because the one that is waited for runs on another then: where the yields that followed let somebody else run, the
// next spin is half as long; where they did not, it may be longer.
void NodeCore::idle(Lead& lead, std::optional<TimePoint> deadline) {
    await_frames(lead);
    if (wait_for_credit(lead)) return;
    const bool arrived = spin_idle(lead);
    if (lost(lead) || arrived || options_.waiting == Waiting::latency) return;
    if (options_.waiting == Waiting::balanced) {
        bool core_wanted = false;
        const TimePoint begin = Clock::now();
        for (TimePoint now = begin; now - begin < kYieldFor && !(deadline && now >= *deadline);) {
            const bool something = yield_idle(lead);
            if (lost(lead)) return;
            const TimePoint then = std::exchange(now, Clock::now());
            core_wanted = core_wanted || now - then > kYieldAlone;
            if (!something) continue;
            spin_turns_ =
                core_wanted ? std::max(spin_turns_ / 2, kSpinTurnsMin) : std::min(spin_turns_ * 2, kSpinTurnsMax);
            return;
        }
    }
    if (!deadline || *deadline > Clock::now()) sleep(lead, deadline);
}

// Where frames wait for room: a peer gives its credit back bank by bank, and rings for nobody. True: look again.
bool NodeCore::wait_for_credit(Lead& lead) {
    const auto waits = [](const std::shared_ptr<PeerState>& peer) {
        return peer->link && peer->link->broken() == nullptr && peer->has_frames_waiting();
    };
    if (crowded_steps_ >= 2 * kCrowdedSteps ||
        (room_waits_.empty() && std::none_of(peers_.begin(), peers_.end(), waits)))
        return false;
    if (++crowded_steps_ > kCrowdedSteps) {
        (void)yield_idle(lead);
        return true;
    }
    baton_.pause();
    lead.lock.unlock();
    (void)spin(lead.watch, attention_, 2);
    lead.lock.lock();
    (void)baton_.resume(lead.turn);
    return true;
}

// True: there may be something to do.
bool NodeCore::spin_idle(Lead& lead) {
    const unsigned turns = options_.waiting == Waiting::latency  ? kSpinTurnsMax
                           : options_.waiting == Waiting::frugal ? kSpinTurnsFrugal
                                                                 : spin_turns_;
    if (fabric_->needs_progress()) {  // each look is one at the sockets
        for (unsigned turn = 0; turn < turns; turn += kTurnsPerProgress)
            if (fabric_->progress() > 0 || lead.watch.arrived() || wanted()) return true;
        return false;
    }
    baton_.pause();
    lead.lock.unlock();
    const bool arrived = spin(lead.watch, attention_, turns);
    lead.lock.lock();
    (void)baton_.resume(lead.turn);
    return arrived;
}

// Lets others have the core once. True: there may be something to do, or the lead was lost.
bool NodeCore::yield_idle(Lead& lead) {
    baton_.pause();
    lead.lock.unlock();
    sched_yield();
    const bool arrived = lead.watch.arrived() || wanted();
    lead.lock.lock();
    if (!baton_.resume(lead.turn)) return true;
    return arrived || (fabric_->needs_progress() && fabric_->progress() > 0);
}

// Without memory for the list it watches nothing, and sleeps sooner.
void NodeCore::await_frames(Lead& lead) try {
    Watch& watch = lead.watch;
    if (watch.version != links_version_) {
        watch.version = links_version_;
        watch.links.clear();
        for (const auto& peer : peers_)
            if (peer->link) watch.links.push_back(peer->link);
    }
    watch.signals.clear();
    for (const auto& peer :
         peers_)  // a parked call is there already: what it waits for comes among replies, or by attention_
        if (peer->link) peer->link->await(watch.signals, takes_calls(*peer) && lead.runs_functions());
} catch (const std::bad_alloc&) {
    lead.watch.clear();
}

void NodeCore::sleep(Lead& lead, std::optional<TimePoint> deadline) {
    const auto no_later = [&deadline](TimePoint limit) { deadline = deadline ? std::min(*deadline, limit) : limit; };
    // A call that is held back is looked at again when it is to be refused. That time may have passed since the last look.
    const auto no_later_than_held = [&](const std::optional<Parked>& parked) {
        if (parked && parked->held_until) no_later(*parked->held_until);
    };
    if (lead.runs_functions()) no_later_than_held(local_parked_);
    bool restless = (local_parked_ && !local_parked_->for_thread) || !room_waits_.empty();
    bool pending = !local_.empty() && !local_parked_ && lead.runs_functions();
    const bool quiet = fabric_->announce_sleep();
    for (const auto& peer : peers_) {
        if (!peer->link) continue;
        const bool ended = peer->link->broken() != nullptr;
        const bool sends = !ended && peer->has_frames_waiting();
        if (ended && awaits_goodbye(*peer)) no_later(*peer->broken_since + kGoodbyeWait);
        restless = restless || sends || peer->waits_to_stage || (peer->parked && !peer->parked->for_thread) ||
                   (peer->gathering != nullptr && peer->gathering->is_called());
        pending = pending || peer->lost || peer->link->pending(takes_calls(*peer) && lead.runs_functions());
        if (lead.runs_functions() && looks_at_calls(*peer)) no_later_than_held(peer->parked);
        if (!peer->link->by_messages() || !peer->staged.is_empty()) no_later(Clock::now() + kSleepMax);
    }
    pending = pending || (!ready_.empty() && lead.runs_functions() && !is_deep());
    if (!spare_memory_->is_empty()) no_later(Clock::now() + kSpareFor);
    if (const auto first = calls_.first_deadline()) no_later(*first);
    if (const auto due = absent_.drop_due()) no_later(*due);
    if (quiet && !pending && baton_.may_sleep(lead.turn) && !attention_.load(std::memory_order_relaxed)) {
        if (restless) no_later(Clock::now() + kShortSleep);
        baton_.fall_asleep();
        lead.lock.unlock();
        sleeper_.sleep(deadline);
        lead.lock.lock();
        tell(baton_.wake_up());
        if (!baton_.resume(lead.turn)) return;
    }
    fabric_->end_sleep();
    progress_in_ = housekeeping_in_ = 1;
}

// ---- the lead goes from hand to hand

// For a function that is known to be long: another thread leads from here on, where there is one. The function starts now all the same, in
// its peer's order.
void NodeCore::hand_over_at_once(Run& run) noexcept {
    if (!baton_.has_followers() || options_.threads < 2) return;
    run.begun = Clock::now();
    set_aside(run);
    tell(baton_.hand_over_to_follower());
}

// Before its thread loses the lead: the run's frame and its code are kept for it.
void NodeCore::set_aside(Run& run) noexcept {
    long_run_list_.add(run);
    run.handed_over = true;
    take_place(run);
    if (run.function != nullptr && !run.entered) run.entered.emplace(cache_->keep_leading());
    if (run.link != nullptr) {
        // The link that the frame came by: its peer may have been met again, and have another one by now.
        if (run.payload_read.load(std::memory_order_acquire)) {  // partner: rove_payload_read
            run.link->release(fabric::Traffic::calls);
        } else {
            run.holds = run.link->shared_from_this();
            run.held = run.link->hold(fabric::Traffic::calls);
        }
    }
    if (run.watch != nullptr) run.watch->clear();
    running_ = nullptr;
}

void NodeCore::end_handed_over(Run& run) {
    long_run_list_.remove(run);
    if (run.replaced) take_thread_back(run);
    if (run.function != nullptr) {
        const TimePoint read_at = std::max(run.begun, run.large_read_at.load(std::memory_order_relaxed));
        run.function->pace.ended(Clock::now() - read_at - run.waited, read_at - run.begun);
    }
    give_place(run);
    run.entered.reset();
    run.let_go();
}

void NodeCore::take_place(Run& run) {
    if (std::exchange(run.has_place, true)) return;
    ++long_runs_;
    if (run.function != nullptr) run.function->pace.take_place();
}

void NodeCore::give_place(Run& run) {
    if (!std::exchange(run.has_place, false)) return;
    if (run.function != nullptr) run.function->pace.give_place();
    if (long_runs_-- >= options_.threads) wake_leader();  // another one may begin
}

// The node's own threads: one leads whenever nobody who waits for a call does, one keeps watch, the others wait.
void NodeCore::serve_own_thread(OwnThread& self) {
    Hold hold(*this);
    Lead lead{.lock = hold.lock(), .turn = {.own = true}};
    while (!stopping_) {
        if (baton_.is_free_for_own()) {
            lead.turn.for_long = baton_.accept_for_long();
            take_lead(lead);
            while (!stopping_ && baton_.keeps(lead.turn)) lead_step(lead, std::nullopt);
            if (!lost(lead)) give_lead(lead);
            lead.watch.clear();
            if (baton_.leads_again()) continue;
        }
        if (long_runs_ >= options_.threads) wake_leader();  // a function may have waited for a follower
        const bool watches = baton_.follow();
        if (watches)
            keep_watch(hold.lock());
        else
            followers_changed_.wait(hold.lock());
        tell(baton_.end_follow(watches));
    }
    self.ended = true;
    --own_live_;
    tell(baton_.end_own());
}

// Until there is a lead to take: the leader has been in one function for too long, or a thread that led has gone for good.
void NodeCore::keep_watch(Lock& lock) {
    Baton::Seen seen = baton_.begin_watch();
    TimePoint next = next_look(std::nullopt);
    while (!stopping_) {
        const bool due = followers_changed_.wait_until(lock, next) == std::cv_status::timeout;
        if (due) next = next_look(std::nullopt);
        switch (baton_.look(seen, running_ != nullptr && options_.threads > 1, due)) {
            case Baton::Look::stay: break;
            case Baton::Look::take: return;
            case Baton::Look::take_over:
                take_run_away();
                baton_.hand_over();
                return;
        }
    }
}

// The function that the leader runs is long, as this thread has seen, and its thread loses the lead.
void NodeCore::take_run_away() noexcept {
    if (running_->function != nullptr && running_->gathering == nullptr) running_->function->pace.seen_long();
    running_->begun = Clock::now() - kWatchEvery;
    set_aside(*running_);
}

// The watch of a thread that waits for a call.
TimePoint NodeCore::next_look(const Deadline& deadline) const {
    const TimePoint look = Clock::now() + (baton_.leader_sleeps() ? kWatchAsleepEvery : kWatchEvery);
    return deadline ? std::min(*deadline, look) : look;
}

void NodeCore::watch_waiting(Baton::Seen& seen) {
    if (baton_.look_waiting(seen, running_ != nullptr) != Baton::Look::take_over) return;
    take_run_away();
    tell(baton_.hand_over_to_waiting());
}

// One thread of the node's own runs no function, so that there is one when all others are in some: it takes replies and parts, ends calls whose
// time is up, and leaves the calls in their mailboxes to the next thread that comes back.
void NodeCore::stand_by(OwnThread& self) {
    Hold hold(*this);
    Lead lead{.lock = hold.lock(), .turn = {.own = true, .quiet = true}};
    Baton::Seen seen;
    while (!stopping_) {
        standby_changed_.wait_for(hold.lock(), kStandbyEvery);
        const Baton::Look look = stopping_ ? Baton::Look::stay : baton_.look_standing_by(seen, running_ != nullptr);
        if (look == Baton::Look::stay) continue;
        if (look == Baton::Look::take_over) {
            take_run_away();
            baton_.hand_over();
        }
        take_lead(lead);
        while (!stopping_ && !lost(lead) && !baton_.has_others()) lead_step(lead, std::nullopt);
        if (!lost(lead)) give_lead(lead);
        lead.watch.clear();
    }
    self.ended = true;
    --own_live_;
}

// The fast path: the result comes through shared memory, while this thread spins, as the next frame from the peer. Then the slot
// need not hold it. Nothing: it came otherwise, and is to be waited for as ever.
std::optional<std::size_t> NodeCore::finish_at_once(Lock& lock, CallTable::Id id, std::span<std::byte> into) {
    if (in_user_code_.core == this) return std::nullopt;
    if (no_nesting_ > 0 || !baton_.is_free(false) || options_.waiting == Waiting::frugal || fabric_->needs_progress())
        return std::nullopt;
    const CallSlot* slot = calls_.flying(id);
    if (slot == nullptr || slot->peer == nullptr || !slot->peer->link) return std::nullopt;
    Lead lead{.lock = lock, .turn = {.own = false}};
    baton_.begin_wait();
    take_lead(lead);
    await_frames(lead);
    (void)spin_idle(lead);
    if (lost(lead)) return std::nullopt;
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
    give_lead(lead);
    return size;
}

void NodeCore::wake_leader() {
    attention_.store(true, std::memory_order_relaxed);
    if (baton_.has_sleeping()) sleeper_.kick();
}

}  // namespace rove
