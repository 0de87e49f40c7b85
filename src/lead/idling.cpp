#include "lead/idling.hpp"

#include <sched.h>

#include <algorithm>

namespace rove {

namespace {

// How long a leader that found nothing by spinning yields between looks before it sleeps.
constexpr auto kYieldFor = std::chrono::microseconds(100);
// A yield after which no other thread runs takes 0.3 to 0.5 us here; one that switches to another thread and back 2 us and more.
constexpr auto kYieldAlone = std::chrono::nanoseconds(1500);
// For frames that wait for credit, and parked ones, no bell rings: check again after this time.
constexpr auto kShortSleep = std::chrono::milliseconds(1);
// How many times a leader whose frames wait for room looks again at once, and then, yielding, before it sleeps.
constexpr unsigned kCrowdedSteps = 200;
// A look at the streams' sockets takes as long as this many looks at a mailbox.
constexpr unsigned kTurnsPerProgress = 10;
constexpr unsigned kSpinTurnsFrugal = 64;

}  // namespace

// Spins, then yields, then sleeps; returns when there may be something to do. Spinning is right while no other thread wants the core,
// because the thread that is waited for then runs on another: if another thread ran during the yields, the next spin is half as long;
// otherwise it may be longer. After a sleep in which nothing has come, the leader sleeps again at once. While a call waits for its code, for
// example, the leader looks every millisecond, and spinning each time took a tenth of the core from the compiler.
void Idling::wait(LeadTurn& turn, Deadline deadline) {
    duties_.await_signals(turn);
    if (look_for_room(turn)) return;
    if (!turn.in_vain_since || waiting_ == Waiting::latency) {
        const bool arrived = spin(turn);
        if (baton_.lost(turn.baton) || arrived || waiting_ == Waiting::latency) return;
        if (waiting_ == Waiting::balanced && yield_for_a_while(turn, deadline)) return;
    }
    if (!deadline || *deadline > Clock::now()) sleep(turn, deadline);
}

bool Idling::yield_for_a_while(LeadTurn& turn, const Deadline& deadline) {
    bool core_wanted = false;
    const TimePoint begin = Clock::now();
    for (TimePoint now = begin; now - begin < kYieldFor && !(deadline && now >= *deadline);) {
        const bool something = yield(turn);
        if (baton_.lost(turn.baton)) return true;
        const TimePoint then = std::exchange(now, Clock::now());
        core_wanted = core_wanted || now - then > kYieldAlone;
        if (!something) continue;
        spin_turns_ = core_wanted ? std::max(spin_turns_ / 2, kSpinTurnsMin) : std::min(spin_turns_ * 2, kSpinTurnsMax);
        return true;
    }
    return false;
}

// Used while frames wait for room: a peer returns credit bank by bank, without a wake-up. True: check again.
bool Idling::look_for_room(LeadTurn& turn) {
    if (crowded_steps_ >= 2 * kCrowdedSteps || !duties_.waits_for_room()) return false;
    if (++crowded_steps_ > kCrowdedSteps)
        (void)yield(turn);
    else
        (void)look_unlocked(turn, 2);
    return true;
}

bool Idling::look_unlocked(LeadTurn& turn, unsigned turns) {
    baton_.pause();
    const bool arrived = [&]() REQUIRES(lock_of<EngineLock>) {
        const Unlocked free(turn.lock);
        const AwaitedSignals none;
        return rove::spin(turn.awaited ? *turn.awaited : none, wakes_.attention(), turns);
    }();
    (void)baton_.resume(turn.baton);
    return arrived;
}

bool Idling::spin(LeadTurn& turn) {
    const unsigned turns = waiting_ == Waiting::latency  ? kSpinTurnsMax
                           : waiting_ == Waiting::frugal ? kSpinTurnsFrugal
                                                         : spin_turns_;
    if (!fabric_->needs_progress()) return look_unlocked(turn, turns);
    for (unsigned look = 0; look < turns; look += kTurnsPerProgress)  // each look is one at the sockets
        if (fabric_->progress() > 0 || turn.has_arrived() || is_wanted()) return true;
    return false;
}

// Lets other threads have the core once. True: there may be something to do, or the lead was lost.
bool Idling::yield(LeadTurn& turn) {
    baton_.pause();
    bool arrived = false;
    {
        const Unlocked free(turn.lock);
        sched_yield();
        arrived = turn.has_arrived() || is_wanted();
    }
    if (!baton_.resume(turn.baton)) return true;
    return arrived || (fabric_->needs_progress() && fabric_->progress() > 0);
}

void Idling::sleep(LeadTurn& turn, Deadline deadline) {
    const auto no_later = [&deadline](TimePoint limit) { deadline = deadline ? std::min(*deadline, limit) : limit; };
    const auto quiet_since = quiet_since_ ? quiet_since_ : turn.in_vain_since;
    turn.is_idle = quiet_since && Clock::now() - *quiet_since >= kIdleAfter;
    const bool nothing_arrived = fabric_->announce_sleep();
    const LeadRest rest = duties_.rest(turn);
    if (rest.until) no_later(*rest.until);
    if (nothing_arrived && !rest.pending && baton_.may_sleep(turn.baton) && !wakes_.was_woken()) {
        if (rest.restless) no_later(Clock::now() + kShortSleep);
        const TimePoint begin = Clock::now();
        if (!turn.is_idle) no_later(begin + kIdleAfter);  // after that without a limit
        const bool due_soon = rest.restless || (rest.until && *rest.until - begin < kIdleAfter);
        baton_.fall_asleep(/*for_long=*/turn.is_idle && !due_soon);
        const bool in_vain = [&]() REQUIRES(lock_of<EngineLock>) {
            const Unlocked free(turn.lock);
            return wakes_.sleep(deadline) == std::cv_status::timeout;
        }();
        turn.in_vain_since = in_vain ? turn.in_vain_since.value_or(begin) : std::optional<TimePoint>();
        quiet_since_ = in_vain ? quiet_since_.value_or(begin) : std::optional<TimePoint>();
        wakes_.tell(baton_.wake_up());
        wakes_.tell_looking();
        if (!baton_.resume(turn.baton)) return;
    }
    fabric_->end_sleep();
    duties_.woke_up();
}

}  // namespace rove
