// The waits of one thread, one on top of the other: a thread that waits for a call serves the node, and a function that it runs may wait as
// well. The upper wait must end before the lower one can continue, even if the lower one's call has ended. While others keep sending, new
// waits may be added on top faster than upper ones end, and the lower ones would be held up for seconds. So a wait on top of one that has
// been held up for kHeldUpMax lets nothing more run on top of it (OwnThreads::stop_nesting).
#pragma once

#include "base/clock.hpp"
#include "lead/engine_lock.hpp"

namespace rove {

// Longer than calling back and forth a hundred times takes, so that it costs nothing while all waits make progress.
inline constexpr auto kHeldUpMax = std::chrono::milliseconds(10);

class Runner;

// One wait of this thread on a node, in the list of the waits beneath it.
//
// Threads: its own, under the engine's lock. Invariants: a thread's waits are listed from the innermost (`top_`) outwards, whichever engines
// they are on, and are destroyed in that order. holds_up() asks only those of its own engine, because only that engine's lock is held.
class StackedWait {
public:
    template <typename IsOver>  // borrowed
    StackedWait(const Runner& runner, const IsOver& is_over)
        : runner_(&runner), of_(&is_over), is_over_([](const void* of) {
              engine_lock_is_held();
              return (*static_cast<const IsOver*>(of))();
          }) {
        top_ = this;
    }
    StackedWait(const StackedWait&) = delete;
    StackedWait& operator=(const StackedWait&) = delete;
    ~StackedWait() { top_ = beneath_; }

    // Whether a wait beneath it, on the same node, has been over for kHeldUpMax. It checks once a millisecond, and otherwise returns what
    // it saw last.
    [[nodiscard]] bool holds_up() { return beneath_ != nullptr && looks_beneath(); }

private:
    [[nodiscard]] bool looks_beneath();

    static constinit thread_local StackedWait* top_ [[gnu::tls_model("initial-exec")]];
    const Runner* runner_;
    const void* of_;
    bool (*is_over_)(const void*);
    StackedWait* beneath_ = top_;
    TimePoint over_since_{};  // as seen by a wait above it
    // When those beneath were last checked.
    TimePoint looked_at_ = beneath_ != nullptr ? beneath_->looked_at_ : TimePoint{};
    bool holds_up_ = beneath_ != nullptr && beneath_->holds_up_;  // the result of that check
};

}  // namespace rove
