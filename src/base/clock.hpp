// Monotonic time.
#pragma once

#include <chrono>

namespace rove {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

[[nodiscard]] inline double microseconds(Duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
}

}  // namespace rove
