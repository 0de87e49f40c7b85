#include "lead/lead.hpp"

#include <sched.h>

#include <algorithm>

#include "code/cache.hpp"

namespace rove {

namespace {

// How long a leader that found nothing by spinning yields between looks before it sleeps.
constexpr auto kYieldFor = std::chrono::microseconds(100);
// A yield that nobody took takes 0.3 to 0.5 us here; one that switches to another thread and back 2 us and more.
constexpr auto kYieldAlone = std::chrono::nanoseconds(1500);
// With frames that wait for credit, or parked ones, nobody rings: look again this soon.
constexpr auto kShortSleep = std::chrono::milliseconds(1);
// How many times a leader whose frames wait for room looks again at once, and then, yielding, before it sleeps.
constexpr unsigned kCrowdedSteps = 200;
// A look at the streams' sockets takes as long as this many looks at a mailbox.
constexpr unsigned kTurnsPerProgress = 10;
constexpr unsigned kSpinTurnsFrugal = 64;
// How often the thread on watch looks at the leader. A function is long when it is seen at two looks, so after one to two
// of these. 2,000 looks a second cost 0.5 % of a core, and a spinning leader is pushed aside for 3 us at most of them.
constexpr auto kWatchEvery = code::Pace::kShort;
// While the leader sleeps. To be woken with it would cost the call that wakes it; this costs 0.1 % of a core.
constexpr auto kWatchAsleepEvery = std::chrono::milliseconds(10);
// How often the thread that stands by looks whether anybody else is there. It is the last one, and seldom needed: 20 looks a second.
constexpr auto kStandbyEvery = std::chrono::milliseconds(50);
// How often a thread that polls while another one leads looks whether that is still so: it is not told, and neither is it where
// interrupt() is called, which may be in a signal handler.
constexpr auto kPollAgain = std::chrono::milliseconds(1);

}  // namespace

Status Lead::open(fabric::Fabric& fabric, Waiting waiting, unsigned threads) {
    fabric_ = &fabric;
    waiting_ = waiting;
    threads_ = threads;
    return sleeper_.open(fabric.descriptors());
}

// ---- one turn

void Lead::take(Turn& turn) {
    const Baton::Tell whom = baton_.take(turn.baton);
    if (whom.sleeper) fabric_->end_sleep();
    tell(whom);
    turn.watch = std::exchange(spare_watch_, {});
}

void Lead::give(Turn& turn) {
    spare_watch_ = std::move(turn.watch);
    tell(baton_.give(turn.baton));
}

void Lead::give_for_long(Turn& turn) {
    spare_watch_ = std::move(turn.watch);
    tell(baton_.give_for_long(turn.baton));
}

void Lead::tell_all_of(Baton::Tell whom) {
    if (whom.waiting) changed_.notify_all();
    if (whom.follower) followers_changed_.notify_one();
    if (whom.sleeper) sleeper_.kick();
}

void Lead::wake() {
    attention_.store(true, std::memory_order_relaxed);
    if (baton_.has_sleeping()) sleeper_.kick();
}

void Lead::wake_unlocked() noexcept {
    attention_.store(true, std::memory_order_relaxed);
    sleeper_.kick();
}

void Lead::interrupt() noexcept {
    interrupted_ = true;
    wake_unlocked();
}

unsigned Lead::step(Turn& turn, Deadline deadline) {
    baton_.begin_step(turn.baton);
    const unsigned handled = duties_.work(turn);
    idle_steps_ += handled == 0 ? 1 : 0;
    if (handled > 0)
        crowded_steps_ = 0;
    else if (!lost(turn) && !(deadline && Clock::now() >= *deadline))
        idle(turn, deadline);
    if (!lost(turn)) make_way(turn);
    return handled;
}

// Without this a busy leader would keep everybody else out.
void Lead::make_way(Turn& turn) {
    if (!mutex_.is_wanted()) return;
    baton_.pause();
    turn.lock.unlock();
    mutex_.let_in();
    turn.lock.lock();
    (void)baton_.resume(turn.baton);
}

// Spins, then yields, then sleeps; returns when there may be something to do. Spinning is right while nobody else wants
// the core, because the one that is waited for runs on another then: where the yields that followed let somebody else run, the
// next spin is half as long; where they did not, it may be longer.
void Lead::idle(Turn& turn, Deadline deadline) {
    duties_.watch(turn);
    if (look_for_room(turn)) return;
    const bool arrived = spin(turn);
    if (lost(turn) || arrived || waiting_ == Waiting::latency) return;
    if (waiting_ == Waiting::balanced) {
        bool core_wanted = false;
        const TimePoint begin = Clock::now();
        for (TimePoint now = begin; now - begin < kYieldFor && !(deadline && now >= *deadline);) {
            const bool something = yield(turn);
            if (lost(turn)) return;
            const TimePoint then = std::exchange(now, Clock::now());
            core_wanted = core_wanted || now - then > kYieldAlone;
            if (!something) continue;
            spin_turns_ =
                core_wanted ? std::max(spin_turns_ / 2, kSpinTurnsMin) : std::min(spin_turns_ * 2, kSpinTurnsMax);
            return;
        }
    }
    if (!deadline || *deadline > Clock::now()) sleep(turn, deadline);
}

// Where frames wait for room: a peer gives its credit back bank by bank, and rings for nobody. True: look again.
bool Lead::look_for_room(Turn& turn) {
    if (crowded_steps_ >= 2 * kCrowdedSteps || !duties_.waits_for_room()) return false;
    if (++crowded_steps_ > kCrowdedSteps)
        (void)yield(turn);
    else
        (void)look_unlocked(turn, 2);
    return true;
}

bool Lead::look_unlocked(Turn& turn, unsigned turns) {
    baton_.pause();
    turn.lock.unlock();
    const bool arrived = rove::spin(turn.watch, attention_, turns);
    turn.lock.lock();
    (void)baton_.resume(turn.baton);
    return arrived;
}

bool Lead::spin(Turn& turn) {
    const unsigned turns = waiting_ == Waiting::latency  ? kSpinTurnsMax
                           : waiting_ == Waiting::frugal ? kSpinTurnsFrugal
                                                         : spin_turns_;
    if (!fabric_->needs_progress()) return look_unlocked(turn, turns);
    for (unsigned look = 0; look < turns; look += kTurnsPerProgress)  // each is one at the sockets
        if (fabric_->progress() > 0 || turn.watch.arrived() || is_wanted()) return true;
    return false;
}

// Lets others have the core once. True: there may be something to do, or the lead was lost.
bool Lead::yield(Turn& turn) {
    baton_.pause();
    turn.lock.unlock();
    sched_yield();
    const bool arrived = turn.watch.arrived() || is_wanted();
    turn.lock.lock();
    if (!baton_.resume(turn.baton)) return true;
    return arrived || (fabric_->needs_progress() && fabric_->progress() > 0);
}

void Lead::sleep(Turn& turn, Deadline deadline) {
    const auto no_later = [&deadline](TimePoint limit) { deadline = deadline ? std::min(*deadline, limit) : limit; };
    const bool quiet = fabric_->announce_sleep();
    const Rest rest = duties_.rest(turn);
    if (rest.until) no_later(*rest.until);
    if (quiet && !rest.pending && baton_.may_sleep(turn.baton) && !attention_.load(std::memory_order_relaxed)) {
        if (rest.restless) no_later(Clock::now() + kShortSleep);
        baton_.fall_asleep();
        turn.lock.unlock();
        sleeper_.sleep(deadline);
        turn.lock.lock();
        tell(baton_.wake_up());
        if (!baton_.resume(turn.baton)) return;
    }
    fabric_->end_sleep();
    duties_.woke_up();
}

// ---- threads that wait

bool Lead::asks() {
    const Baton::Asked asked = baton_.ask();
    tell(asked.tell);
    return asked.leads;
}

bool Lead::wait_while_led(Lock& lock, Deadline deadline) {
    Baton::Turn seen{.own = false};
    baton_.begin_step(seen);
    while (baton_.is_led()) {
        const TimePoint now = Clock::now();
        if ((deadline && now >= *deadline) || !baton_.may_sleep(seen) || was_interrupted()) return false;
        const TimePoint look = now + kPollAgain;
        changed_.wait_until(lock, deadline ? std::min(*deadline, look) : look);
    }
    return true;
}

TimePoint Lead::next_look(const Deadline& deadline) const {
    const TimePoint look = Clock::now() + (baton_.leader_sleeps() ? kWatchAsleepEvery : kWatchEvery);
    return deadline ? std::min(*deadline, look) : look;
}

void Lead::watch_waiting(Baton::Seen& seen) {
    if (baton_.look_waiting(seen, duties_.runs_function()) != Baton::Look::take_over) return;
    duties_.take_function_away();
    hand_over_to_waiting();
}

// ---- the node's own threads

void Lead::serve(Lock& lock) {
    Turn turn{.lock = lock, .baton = {.own = true}};
    while (!stopping_) {
        if (baton_.is_free_for_own()) {
            turn.baton.for_long = baton_.accept_for_long();
            take(turn);
            while (!stopping_ && baton_.keeps(turn.baton)) step(turn, std::nullopt);
            if (!lost(turn)) give(turn);
            turn.watch.clear();
            if (baton_.leads_again()) continue;
        }
        duties_.follower_came();
        const bool watches = baton_.follow();
        if (watches)
            keep_watch(lock);
        else
            followers_changed_.wait(lock);
        tell(baton_.end_follow(watches));
    }
    tell(baton_.end_own());
}

// Until there is a lead to take: the leader has been in one function for too long, or a thread that led has gone for good.
void Lead::keep_watch(Lock& lock) {
    Baton::Seen seen = baton_.begin_watch();
    TimePoint next = next_look(std::nullopt);
    while (!stopping_) {
        const bool due = followers_changed_.wait_until(lock, next) == std::cv_status::timeout;
        if (due) next = next_look(std::nullopt);
        switch (baton_.look(seen, threads_ > 1 && duties_.runs_function(), due)) {
            case Baton::Look::stay: break;
            case Baton::Look::take: return;
            case Baton::Look::take_over: return take_over();
        }
    }
}

// The function that the leader runs is long, as this thread has seen, and its thread loses the lead.
void Lead::take_over() {
    duties_.take_function_away();
    baton_.hand_over();
}

void Lead::stand_by(Lock& lock) {
    Turn turn{.lock = lock, .baton = {.own = true, .quiet = true}};
    Baton::Seen seen;
    while (!stopping_) {
        standby_changed_.wait_for(lock, kStandbyEvery);
        const Baton::Look look = stopping_ ? Baton::Look::stay : baton_.look_standing_by(seen, duties_.runs_function());
        if (look == Baton::Look::stay) continue;
        if (look == Baton::Look::take_over) take_over();
        take(turn);
        while (!stopping_ && !lost(turn) && !baton_.has_others()) step(turn, std::nullopt);
        if (!lost(turn)) give(turn);
        turn.watch.clear();
    }
}

void Lead::stop() {
    stopping_ = true;
    followers_changed_.notify_all();
    standby_changed_.notify_all();
}

}  // namespace rove
