// How a thread waits for anything on a node: it leads, or waits for whoever does. For the files of NodeCore that wait.
#pragma once

#include <optional>

#include "base/float_environment.hpp"
#include "base/stack.hpp"
#include "node/core.hpp"
#include "node/stacked_wait.hpp"

namespace rove {

// Leads, or waits for a leader, until it is done or late, or the node is at its end. Gives done().
template <typename Done>
bool NodeCore::lead_until(Lock& lock, Deadline deadline, const Done& done, Manner manner) {
    if (done()) return true;
    const auto late = [&] { return ending_ || (deadline && Clock::now() >= *deadline); };
    if (late()) {
        // A look may run functions.
        if (!ending_ && !manner.quiet && !manner.holds_back && manner.turn == nullptr) look_once(lock);
        return done();
    }
    bool untold = step_aside();
    const InUserCode here = in_user_code_.core == this ? in_user_code_ : InUserCode{};
    bool quiet =
        manner.quiet || no_nesting_ > 0 || (own_threads_ > 1 && (is_deep() || has_less_stack_than(kStackReserveBytes)));
    bool run_waits = here.run != nullptr && here.run->handed_over;
    if (quiet && here.run != nullptr && !replace_thread(*here.run)) {
        // As many threads are replaced as may be. Other functions run on top of this one instead, unless its NoNesting forbids that:
        // then it keeps its thread, and its place among the functions that run long.
        quiet = no_nesting_ > 0;
        run_waits = run_waits && !quiet;
    }
    if (run_waits) give_place(*here.run);
    if (here.run != nullptr) here.run->waits = true;
    // What the function has set of its arithmetic is not for the node's own code: where that rounds, it would trap.
    std::optional<StandardFloatEnvironment> floats;
    if (here.run != nullptr) floats.emplace(/*on_own_thread=*/false);
    const TimePoint waits_since = here.run != nullptr ? Clock::now() : TimePoint{};
    nested_ += here.core != nullptr ? 1 : 0;
    Lead lead{.lock = lock,
              .turn = {.own = false, .quiet = quiet},
              .holds_back = manner.holds_back,
              .turn_beneath = manner.turn};
    baton_.begin_wait();
    bool is_done = false, watches = false;
    Baton::Seen seen;
    const auto is_over = [&] { return done() || late(); };
    StackedWait stacked(*this, is_over);
    bool may_nest = !quiet && own_threads_ > 1, unnested = false;
    while (!(is_done = done()) && !late()) {
        if (may_nest && stacked.holds_up()) {
            lead.turn.quiet = quiet = unnested = stops_nesting();
            may_nest = false;
        }
        if (baton_.is_free(quiet)) {
            if (std::exchange(watches, false)) tell(baton_.end_watch_waiting());
            take_lead(lead);
            untold = false;
            while (!lost(lead) && !(is_done = done()) && !late() && !(may_nest && stacked.holds_up()))
                lead_step(lead, deadline);
            if (!lost(lead)) give_lead(lead);
            lead.watch.clear();
            continue;
        }
        tell(baton_.await(quiet));
        untold = false;
        watches = options_.threads > 1 && baton_.watches_waiting(watches);
        if (const Deadline until = watches ? next_look(deadline) : deadline)
            changed_.wait_until(lock, *until);
        else
            changed_.wait(lock);
        baton_.end_await(quiet);
        if (watches) watch_waiting(seen);
    }
    if (watches) tell(baton_.end_watch_waiting());
    // Room may come between two looks: then it has not waited at all, and nobody knows that the lead is free.
    if (untold) tell(baton_.leave_to_others());
    tell(baton_.end_wait());
    if (unnested) --unnested_waits_;
    nested_ -= here.core != nullptr ? 1 : 0;
    if (run_waits) take_place(*here.run);
    if (here.run == nullptr) return is_done;
    here.run->waits = false;
    here.run->waited += Clock::now() - waits_since;
    return is_done;
}

}  // namespace rove
