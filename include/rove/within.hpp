// Time limits: peer.async(rove::within(5ms), f, args…), peer.limited(rove::within(5ms)).
//
// A limit covers the whole call: connecting to its node again, waiting for room in its mailbox, sending, and the answer. It starts when it
// is used, not when it is made. Error: `timed_out` when the time is over; the message says whether the call was sent.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace rove {

// A time limit; see rove::within.
struct Within {
    std::int64_t ns;  // negative: no limit
};

namespace detail {

inline constexpr std::int64_t kForever = -1;  // no limit, wherever a limit in ns is given

// A negative time, and one that is not a number, is 0. A time that is too long becomes the longest that can be represented.
template <typename Rep, typename Period>
std::int64_t ns_of(std::chrono::duration<Rep, Period> time) {
    using Float = std::chrono::duration<long double, std::nano>;  // holds any duration, rounded
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    const long double rounded = std::chrono::duration_cast<Float>(time).count();
    if (!(rounded > 0)) return 0;
    if (rounded >= static_cast<long double>(kMost) / 2) return kMost;  // 146 years: the cast below cannot overflow
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace detail

template <typename Rep, typename Period>
[[nodiscard]] Within within(std::chrono::duration<Rep, Period> time) {
    return {detail::ns_of(time)};
}

}  // namespace rove
