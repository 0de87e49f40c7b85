// HousekeepingClock: when a node's housekeeping is due. The clock is read once every kSteps frames and turns.
//
// Threads: under the engine's lock. Invariant: advance() is true at most once every kEvery, except after hurry().
#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace rove {

class HousekeepingClock {
public:
    static constexpr auto kEvery = std::chrono::milliseconds(20);
    static constexpr unsigned kSteps = 1024;

    explicit HousekeepingClock(TimePoint (*now)() = [] { return Clock::now(); }) : now_(now) {}

    // Counts one turn, and the frames that were handled in it, because a turn with many peers whose functions are slow takes long. True:
    // housekeeping is to be done now, and the next time is set.
    [[nodiscard]] bool advance(unsigned frames) {
        steps_left_ -= std::min(steps_left_, 1 + frames);
        if (steps_left_ > 0) return false;
        steps_left_ = kSteps;
        const TimePoint now = now_();
        if (now < due_) return false;
        due_ = now + kEvery;
        return true;
    }
    // Housekeeping is due in the next turn, because something waits for it.
    void hurry() {
        due_ = {};
        steps_left_ = 1;
    }
    // The clock is to be read in the next turn, because time has passed.
    void look_soon() { steps_left_ = 1; }

private:
    TimePoint (*const now_)();
    unsigned steps_left_ = 1;
    TimePoint due_{};
};

}  // namespace rove
