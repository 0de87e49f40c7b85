// Functions and callbacks while they run: how a long one goes on beside the leader, and which places there are for those.
#include <cxxabi.h>

#include <algorithm>

#include "base/stack.hpp"
#include "node/core.hpp"
#include "node/gathering.hpp"
#include "node/running.hpp"
#include "rove/edge.h"

namespace rove {

constinit thread_local NodeCore::InUserCode NodeCore::in_user_code_;
constinit thread_local unsigned NodeCore::nested_ = 0;
constinit thread_local unsigned NodeCore::no_nesting_ = 0;

unsigned NodeCore::tell_of_ends(Lead::Turn& turn) {
    unsigned told = 0;
    while (!ready_.empty() && !lead_.lost(turn) && !is_deep()) {
        CallSlot* const slot = calls_.find(ready_.front());
        ready_.pop_front();
        if (slot == nullptr || slot->notify == nullptr) continue;  // forgotten, or taken back, since it ended
        const auto notify = std::exchange(slot->notify, nullptr);
        void* const argument = slot->notify_argument;
        Run callback{.watch = &turn.watch, .on_own_thread = turn.baton.own};
        begin_run(callback);
        go_beneath(turn);
        const InUserCode outer = std::exchange(in_user_code_, {this, turn.baton.term, &callback});
        turn.lock.unlock();
        try {
            call_out(callback, [&] { notify(argument); });
        } catch (const abi::__forced_unwind&) {
            keep_thread(nullptr);
        } catch (...) {  // of a coroutine that lets it out where it is resumed
            rove_report_caught("what waited for a call");
        }
        stay_in_parent("a callback");
        turn.lock.lock();
        in_user_code_ = outer;
        come_up(turn);
        end_run(callback);
        ++told;
    }
    lead_.tell_waiting();  // some wait for what was done there
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
    lead_.hand_over();
    return true;
}

// For a thread that asks whether its call has ended and does not wait. Outside of functions nothing need be done for it: the node's
// threads serve. A function that asks again and again must not keep the lead meanwhile.
void NodeCore::look_once(Lock& lock) {
    if (in_user_code_.core != this && own_threads_.count() > 0) return;
    step_aside();
    const bool is_beneath = in_user_code_.core == this;
    if (is_beneath) in_user_code_.run->noticed.reset();  // it waits for a call, and for no lock
    if (!lead_.asks()) return;
    Lead::Turn turn{.lock = lock, .baton = {.own = false, .quiet = no_nesting_ > 0 || is_deep()}};
    nested_ += is_beneath ? 1 : 0;
    lead_.take(turn);
    (void)work(turn);
    if (!lead_.lost(turn)) lead_.give(turn);
    nested_ -= is_beneath ? 1 : 0;
}

// For a function that is known to be long: another thread leads from here on, where there is one. The function starts now all the same, in
// its peer's order.
void NodeCore::hand_over_at_once(Run& run) noexcept {
    if (!lead_.has_followers() || options_.threads < 2) return;
    run.begun = Clock::now();
    set_aside(run);
    lead_.hand_over_to_follower();
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
    if (run.replaced) own_threads_.take_back(run);
    if (run.function != nullptr) {
        const TimePoint read_at = std::max(run.begun, run.large_read_at.load(std::memory_order_relaxed));
        run.function->pace.ended(Clock::now() - read_at - run.waited, read_at - run.begun);
    }
    give_place(run);
    run.entered.reset();
    if (run.let_go()) lead_.wake();
}

void NodeCore::take_place(Run& run) {
    if (std::exchange(run.has_place, true)) return;
    ++long_runs_;
    if (run.function != nullptr) run.function->pace.take_place();
}

void NodeCore::give_place(Run& run) {
    if (!std::exchange(run.has_place, false)) return;
    if (run.function != nullptr) run.function->pace.give_place();
    if (long_runs_-- >= options_.threads) lead_.wake();  // another one may begin
}

// The function that the leader runs is long, as this thread has seen, and its thread loses the lead.
void NodeCore::take_function_away() noexcept {
    if (running_->function != nullptr && running_->gathering == nullptr) running_->function->pace.seen_long();
    running_->begun = Clock::now() - code::Pace::kShort;
    set_aside(*running_);
}

bool NodeCore::runs_function() const {
    return running_ != nullptr;
}

// A run that reads its payload has a thread besides, and takes none. (Where what it reads has code of its own that waits for a call, it is
// not among the long runs either meanwhile.)
unsigned NodeCore::places_taken() const {
    const unsigned leading = running_ != nullptr && running_->gathering != nullptr ? 1 : 0;
    return long_runs_ - std::min(long_runs_, own_threads_.gatherings() - leading);
}

}  // namespace rove
