#include "lead/runner.hpp"

#include <algorithm>

namespace rove {

// Leads for one step, and for as long as nothing was handled and `goes_on` returns true. Precondition: the lead is free.
template <typename GoesOn>
unsigned Runner::lead(Lock& lock, Deadline deadline, const GoesOn& goes_on) {
    Lead::Turn turn{.lock = lock,
                    .baton = {.own = false, .quiet = ThreadRuns::is_nesting_forbidden() || ThreadRuns::is_deep()}};
    const unsigned beneath = ThreadRuns::is_in_any() ? 1 : 0;
    ThreadRuns::nested_ += beneath;
    lead_.take(turn);
    unsigned handled = duties_.work(turn);
    while (handled == 0 && !lead_.lost(turn) && goes_on()) handled = lead_.step(turn, deadline);
    if (!lead_.lost(turn)) lead_.give(turn);
    ThreadRuns::nested_ -= beneath;
    return handled;
}

unsigned Runner::poll(Lock& lock, std::chrono::milliseconds wait) {
    if (Runner* const other = elsewhere()) {
        const Unlocked free(lock);
        const Hold hold(other->lead_.mutex());
        other->step_aside();
        other->lead_.leave_to_others();
    }
    std::optional<TimePoint> deadline;
    if (wait.count() > 0) deadline = deadline_of(detail::ns_of(wait));
    if (lead_.is_led()) {
        if (wait.count() == 0 || is_in_mine()) return 0;  // a thread in a function can lead itself
        if (!lead_.wait_while_led(lock, deadline)) return 0;
    }
    return lead(lock, deadline, [&] {
        return wait.count() != 0 && !lead_.wakes().take_interrupt() && (!deadline || Clock::now() < *deadline);
    });
}

bool Runner::step_aside() {
    if (!runs_as_leader()) return false;
    set_aside(Clock::now());
    lead_.hand_over();
    return true;
}

void Runner::look_once(Lock& lock) {
    if (!ThreadRuns::is_in_any() && own_threads_.count() > 0) return;
    if (Runner* const other = elsewhere()) {
        const Unlocked free(lock);
        Hold hold(other->lead_.mutex());
        other->look_once(hold.lock());
    }
    step_aside();
    if (is_in_mine()) ThreadRuns::top_.run->noticed.reset();  // it waits for a call, and for no lock
    if (!lead_.asks()) return;
    (void)lead(lock, std::nullopt, [] { return false; });
}

unsigned Runner::depth() const {
    unsigned depth = 0;
    const Runner* of = ThreadRuns::top_.runner;
    for (const Run* run = ThreadRuns::top_.run; run != nullptr; of = run->beneath_of, run = run->beneath)
        depth += of == this ? 1 : 0;
    return depth;
}

// ---- a thread that is in a function of this engine, and leads or waits on another one

// This engine treats the thread as if it waited quietly: another thread is made in its place. If too many are, it keeps its place among the
// functions that run long.
Runner::Absence Runner::leave(Lock& other) {
    const Unlocked free(other);
    const Hold hold(lead_.mutex());
    Run& run = *ThreadRuns::top_.run;
    step_aside();
    lead_.leave_to_others();
    const bool of_place = own_threads_.replace(run) && run.handed_over;
    if (of_place) give_place(run);
    run.waits = true;
    return {of_place, Clock::now()};
}

void Runner::come_back(const Absence& from, Lock& other) {
    const Unlocked free(other);
    const Hold hold(lead_.mutex());
    Run& run = *ThreadRuns::top_.run;
    if (from.of_place) take_place(run);
    run.waits = false;
    run.waited += Clock::now() - from.since;
}

Runner* Runner::next_unserved(ThreadRuns::Within& in) const {
    while (in.run != nullptr) {
        Runner* const of = in.of;
        in = ThreadRuns::beneath(*in.run);
        if (of != this && of->own_threads_.count() < 2 && !of->process_.is_past()) return of;
    }
    return nullptr;
}

void Runner::serve_beneath(Lock& lock, const Manner& manner) {
    const bool quiet = manner.quiet || manner.holds_back || manner.large != nullptr;
    if (quiet) ThreadRuns::forbid_nesting(1);
    ThreadRuns::Within in = ThreadRuns::innermost();
    while (Runner* const unserved = next_unserved(in)) {
        const Unlocked free(lock);
        Hold hold(unserved->lead_.mutex());
        unserved->look_once(hold.lock());
    }
    if (quiet) ThreadRuns::forbid_nesting(-1);
}

// For a function that is known to be long: another thread, if there is one, takes over the lead. The function still starts now, in its peer's
// order.
void Runner::hand_over_at_once(Run& run) noexcept {
    if (!lead_.has_followers() || options_.threads < 2) return;
    run.begun = Clock::now();
    set_aside(run);
    lead_.hand_over_to_follower();
}

void Runner::hand_over_here() {
    if (runs_as_leader()) hand_over_at_once(*leading_);
}

void Runner::set_aside(TimePoint since) noexcept {
    leading_->begun = since;
    set_aside(*leading_);
}

void Runner::set_aside(Run& run) noexcept {
    long_run_list_.add(run);
    run.handed_over = true;
    take_place(run);
    if (run.function != nullptr && !run.entered) run.entered.emplace(code_.keep());
    if (run.link != nullptr) {
        // The link over which the frame arrived: its peer may have connected again, and have another link by now.
        if (run.payload_read.load(std::memory_order_acquire)) {  // partner: rove_payload_read
            run.link->release(fabric::Traffic::calls);
        } else {
            run.holds = run.link->shared_from_this();
            run.held = run.link->hold(fabric::Traffic::calls);
        }
    }
    if (run.awaited != nullptr) run.awaited->clear();
    leading_ = nullptr;
}

void Runner::end_handed_over(Run& run) {
    long_run_list_.remove(run);
    if (run.replaced) own_threads_.take_back(run);
    if (run.function != nullptr) {
        const TimePoint read_at = std::max(run.begun, run.large_read_at.load(std::memory_order_relaxed));
        run.function->pace.ended(Clock::now() - read_at - run.waited, read_at - run.begun);
    }
    give_place(run);
    run.entered.reset();
    if (run.let_go()) lead_.wake();
}

void Runner::give_up(Run& run) {
    give_place(run);
    long_run_list_.remove(run);
    --busy_;
}

void Runner::take_place(Run& run) {
    if (std::exchange(run.has_place, true)) return;
    ++long_run_count_;
    if (run.function != nullptr) run.function->pace.take_place();
}

void Runner::give_place(Run& run) {
    if (!std::exchange(run.has_place, false)) return;
    if (run.function != nullptr) run.function->pace.give_place();
    if (long_run_count_-- >= options_.threads) lead_.wake();  // another one may begin
}

void Runner::take_away() noexcept {
    if (leading_->function != nullptr && leading_->gathering == nullptr) leading_->function->pace.seen_long();
    set_aside(Clock::now() - code::Pace::kShort);
}

// A run that gathers its payload takes no place, not even while code that reads the arguments waits for a call.
unsigned Runner::places_taken() const {
    const unsigned leading = leading_ != nullptr && leading_->gathering != nullptr ? 1 : 0;
    return long_run_count_ - std::min(long_run_count_, own_threads_.gatherings() - leading);
}

// All places for long functions are taken. A function that has never run starts, provided that a follower could take the lead over; so does
// one that may have been long by accident.
bool Runner::waits_where_places_are_rare(const code::Function& function) const {
    if (places_taken() < options_.threads) return false;
    if (function.pace.is_long() && !function.pace.may_be_tried()) return true;
    return !lead_.has_followers() && !function.pace.is_short();
}

}  // namespace rove
