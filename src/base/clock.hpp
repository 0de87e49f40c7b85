// Monotonic time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace rove {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;
using Deadline = std::optional<TimePoint>;  // none: no limit

// The end of a limit that begins now; none for a negative limit. Limits beyond ten years have no end, so that nothing overflows.
[[nodiscard]] inline Deadline deadline_of(std::int64_t limit_ns) {
    constexpr std::int64_t kEverNs = 10LL * 366 * 24 * 3600 * 1'000'000'000;
    if (limit_ns < 0) return std::nullopt;
    return Clock::now() + std::chrono::nanoseconds(std::min(limit_ns, kEverNs));
}

[[nodiscard]] inline double microseconds(Duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
}

}  // namespace rove
