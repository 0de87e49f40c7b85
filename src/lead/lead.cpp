#include "lead/lead.hpp"

#include <algorithm>

#include "code/cache.hpp"

namespace rove {

namespace {

// How often the thread on watch checks the leader. A function is long when two checks have seen it, so after one to two of these intervals.
// 2,000 checks a second cost 0.5 % of a core, and each displaces a spinning leader for 3 us at most.
constexpr auto kWatchEvery = code::Pace::kShort;
// The same while the leader sleeps, before it sleeps for long: waking the watching thread with the leader would cost the call that wakes it.
constexpr auto kWatchAsleepEvery = std::chrono::milliseconds(10);
// How often the standby thread checks whether another thread can lead again, after none could.
constexpr auto kStandbyEvery = std::chrono::milliseconds(50);
// How often a thread that polls checks whether another one still leads, unless that one sleeps for long. Nothing wakes it when that changes, or
// when interrupt() is called, which may be in a signal handler; but the sleeper does, which interrupt() wakes. It is told of what has happened.
constexpr auto kPollAgain = std::chrono::milliseconds(1);

}  // namespace

Status Lead::open(fabric::Fabric& fabric, Waiting waiting, unsigned threads) {
    fabric_ = &fabric;
    threads_ = threads;
    {
        const Hold hold(mutex_);
        idling_.open(fabric, waiting);
    }
    return wakes_.open(fabric.descriptors());
}

// ---- one turn

void Lead::give_for_long(Turn& turn) {
    keep_awaited(turn);
    wakes_.tell(baton_.give_for_long(turn.baton));
}

unsigned Lead::step(Turn& turn, Deadline deadline) {
    baton_.begin_step(turn.baton);
    const unsigned handled = duties_.work(turn);
    idling_.after(handled, turn, deadline);
    if (!lost(turn)) make_way(turn);
    return handled;
}

// Without this a busy leader would keep all other threads out.
void Lead::make_way(Turn& turn) {
    if (!mutex_.is_wanted()) return;
    baton_.pause();
    {
        const Unlocked free(turn.lock);
        mutex_.let_in();
    }
    (void)baton_.resume(turn.baton);
}

// ---- threads that wait

bool Lead::asks() {
    const Baton::Asked asked = baton_.ask();
    wakes_.tell(asked.tell);
    return asked.leads;
}

bool Lead::wait_while_led(Lock& lock, Deadline deadline) {
    Baton::Turn seen{.own = false};
    baton_.begin_step(seen);
    while (baton_.is_led()) {
        const TimePoint now = Clock::now();
        if ((deadline && now >= *deadline) || !baton_.may_sleep(seen) || wakes_.take_interrupt()) return false;
        const TimePoint look = now + kPollAgain;
        const bool rests = baton_.leader_sleeps(/*for_long=*/true);
        (void)wakes_.await_change_or_leader(lock, rests || (deadline && *deadline < look) ? deadline : look);
    }
    return true;
}

TimePoint Lead::next_look(const Deadline& deadline) const {
    const TimePoint look = Clock::now() + (baton_.leader_sleeps() ? kWatchAsleepEvery : kWatchEvery);
    return deadline ? std::min(*deadline, look) : look;
}

void Lead::watch_waiting(Lookout::Seen& seen) {
    if (Lookout(baton_).by_waiting(seen, duties_.runs_function()) != Lookout::Look::take_over) return;
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
            while (!stopping_ && baton_.take_step(turn.baton)) step(turn, std::nullopt);
            if (!lost(turn)) give(turn);
            turn.drop_awaited();
            if (baton_.leads_again()) continue;
        }
        duties_.follower_came();
        const bool watches = baton_.follow();
        if (watches)
            keep_watch(lock);
        else
            (void)wakes_.await_lead(lock, std::nullopt);
        wakes_.tell(baton_.end_follow(watches));
    }
    wakes_.tell(baton_.end_own());
}

// Keeps watch until the lead can be taken: the leader has been in one function for too long, or no thread leads any more.
void Lead::keep_watch(Lock& lock) {
    Lookout::Seen seen = Lookout(baton_).begin();
    TimePoint next = next_look(std::nullopt);
    while (!stopping_) {
        bool due = false;
        if (baton_.rest_watch())
            wakes_.await_lead_or_leader(lock);
        else
            due = wakes_.await_lead(lock, next) == std::cv_status::timeout;
        if (due || Clock::now() >= next) next = next_look(std::nullopt);
        switch (Lookout(baton_).by_follower(seen, threads_ > 1 && duties_.runs_function(), due)) {
            case Lookout::Look::stay: break;
            case Lookout::Look::take: return;
            case Lookout::Look::take_over: return take_over();
        }
    }
}

// The function that the leader runs is long, as this thread has seen; the leader's thread loses the lead.
void Lead::take_over() {
    duties_.take_function_away();
    baton_.hand_over();
}

void Lead::stand_by(Lock& lock) {
    Turn turn{.lock = lock, .baton = {.own = true, .quiet = true}};
    Lookout::Seen seen;
    while (!stopping_) {
        (void)wakes_.await_end(lock, baton_.rest_standby() ? std::nullopt : Deadline(Clock::now() + kStandbyEvery));
        const Lookout::Look look =
            stopping_ ? Lookout::Look::stay : Lookout(baton_).by_standing_by(seen, duties_.runs_function());
        if (look == Lookout::Look::stay) continue;
        if (look == Lookout::Look::take_over) take_over();
        take(turn);
        while (!stopping_ && !lost(turn) && !baton_.has_others()) step(turn, std::nullopt);
        if (!lost(turn)) give(turn);
        turn.drop_awaited();
    }
}

void Lead::stop() {
    stopping_ = true;
    wakes_.tell_own();
}

}  // namespace rove
