#include "lead/stacked_wait.hpp"

namespace rove {

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(1);

}  // namespace

constinit thread_local StackedWait* StackedWait::top_ = nullptr;

bool StackedWait::looks_beneath() {
    const TimePoint now = Clock::now();
    if (now - looked_at_ < kLookEvery) return holds_up_;
    looked_at_ = now;
    holds_up_ = false;
    for (StackedWait* wait = beneath_; wait != nullptr; wait = wait->beneath_) {
        if (wait->runner_ != runner_) continue;  // that engine's lock is not held
        if (!wait->is_over_(wait->of_))
            wait->over_since_ = {};
        else if (wait->over_since_ == TimePoint{})
            wait->over_since_ = now;
        else
            holds_up_ = holds_up_ || now - wait->over_since_ >= kHeldUpMax;
    }
    return holds_up_;
}

}  // namespace rove
