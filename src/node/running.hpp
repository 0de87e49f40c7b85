// What every run of a function passes, inlined: for the files of NodeCore that begin one. What few pass is in runs.cpp and dispatch.cpp.
//
// Threads: under the node's lock, where nothing else is said.
#pragma once

#include "base/float_environment.hpp"
#include "node/core.hpp"

namespace rove {

[[gnu::always_inline]] inline void NodeCore::begin_run(Run& run) {
    lead_.begin_run();
    ++busy_;
    running_ = &run;
    if (in_user_code_.core == this && in_user_code_.run != nullptr) {
        run.beneath = in_user_code_.run;
        run.nested_in = run.beneath->function;
    }
    if (run.function != nullptr && run.function->pace.is_long()) hand_over_at_once(run);  // where another can lead
}

[[gnu::always_inline]] inline void NodeCore::end_run(Run& run) {
    --busy_;
    if (run.handed_over) return end_handed_over(run);
    running_ = nullptr;
    if (run.function == nullptr) return;
    run.function->pace.ended_at_once();
    if (run.function->waits_quietly.load(std::memory_order_relaxed))
        run.function->waits_quietly.store(false, std::memory_order_relaxed);  // not with these arguments
    if (run.entered)
        run.entered.reset();
    else
        cache_->leave_leading();
}

// The one way from a thread that leads into code that is not the node's. Without the lock.
template <typename Code>
[[gnu::always_inline]] inline void NodeCore::call_out(const Run& run, const Code& code) {
    const StandardFloatEnvironment floats(run.on_own_thread);
    code();
}

// Around what a leader runs without the lock, on top of its own wait.
[[gnu::always_inline]] inline void NodeCore::go_beneath(const Lead::Turn& turn) {
    if (turn.turn_beneath == nullptr) return;
    turn.turn_beneath->go_beneath();
    lead_.tell_waiting();  // some may pass it
}

[[gnu::always_inline]] inline void NodeCore::come_up(const Lead::Turn& turn) {
    if (turn.turn_beneath != nullptr) turn.turn_beneath->come_up();
}

// As many functions run long already as there are threads for them, or have waited quietly as may.
[[gnu::always_inline]] inline bool NodeCore::must_wait_for_thread(const code::Function& function,
                                                                  const PeerState* from) const {
    if (own_threads_.count() < 2) return false;
    if (own_threads_.quiet().holds(function, from)) return true;
    return long_runs_ >= options_.threads && waits_where_places_are_rare(function);
}

}  // namespace rove
