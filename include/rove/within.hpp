// Limits on how long something may take: peer.async(rove::within(5ms), f, args…), peer.limited(rove::within(5ms)).
//
// A limit is for all of a call: meeting its node again, waiting for room in its mailbox, sending, and the answer. It begins where it is
// used and not where it is made. `timed_out` when it is up; the error says whether the call was sent.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace rove {

struct Within {
    std::int64_t ns;  // negative: for ever
};

namespace detail {
// A negative time, or none at all (NaN), is 0; one that does not fit is as long as can be.
template <typename Rep, typename Period>
std::int64_t ns_of(std::chrono::duration<Rep, Period> time) {
    using Float = std::chrono::duration<long double, std::nano>;  // holds any duration, rounded
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    const long double rounded = std::chrono::duration_cast<Float>(time).count();
    if (!(rounded > 0)) return 0;
    if (rounded >= static_cast<long double>(kMost) / 2) return kMost;  // 146 years: the cast below has room
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}
}  // namespace detail

template <typename Rep, typename Period>
[[nodiscard]] Within within(std::chrono::duration<Rep, Period> time) {
    return {detail::ns_of(time)};
}

}  // namespace rove
