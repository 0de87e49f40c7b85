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
    const auto late = [&]() REQUIRES(lock_of<NodeLock>) { return ending_ || (deadline && Clock::now() >= *deadline); };
    if (late()) {
        // A look may run functions.
        if (!ending_ && !manner.quiet && !manner.holds_back && manner.turn == nullptr) look_once(lock);
        return done();
    }
    bool untold = step_aside();
    const InUserCode here = in_user_code_.core == this ? in_user_code_ : InUserCode{};
    bool quiet = manner.quiet || no_nesting_ > 0 ||
                 (own_threads_.count() > 1 && (is_deep() || has_less_stack_than(kStackReserveBytes)));
    bool run_waits = here.run != nullptr && here.run->handed_over;
    if (quiet && here.run != nullptr && !own_threads_.replace(*here.run)) {
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
    Lead::Turn turn{.lock = lock,
                    .baton = {.own = false, .quiet = quiet},
                    .holds_back = manner.holds_back,
                    .turn_beneath = manner.turn};
    struct Waiter {
        NodeCore& core;
        const Done& done;
        const Deadline& deadline;
        bool may_nest, is_done = false, unnested = false;
        StackedWait stacked{core, *this};
        [[nodiscard]] bool operator()() const REQUIRES(lock_of<NodeLock>) {
            return done() || core.ending_ || (deadline && Clock::now() >= *deadline);
        }
        [[nodiscard]] bool is_over() REQUIRES(lock_of<NodeLock>) {
            is_done = done();
            return is_done || core.ending_ || (deadline && Clock::now() >= *deadline);
        }
        // It holds up a wait beneath it: nothing more is to run on top of it.
        [[nodiscard]] bool wants_change() { return may_nest && stacked.holds_up(); }
        void change(Lead::Turn& turn) REQUIRES(lock_of<NodeLock>) {
            turn.baton.quiet = unnested = core.own_threads_.stop_nesting();
            may_nest = false;
        }
    } waiter{*this, done, deadline, !quiet && own_threads_.count() > 1};
    lead_.wait(turn, deadline, waiter, untold);
    if (waiter.unnested) own_threads_.nest_again();
    nested_ -= here.core != nullptr ? 1 : 0;
    if (run_waits) take_place(*here.run);
    if (here.run == nullptr) return waiter.is_done;
    here.run->waits = false;
    here.run->waited += Clock::now() - waits_since;
    return waiter.is_done;
}

}  // namespace rove
