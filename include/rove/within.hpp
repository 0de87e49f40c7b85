// Limits on how long something may take: peer.async(rove::within(5ms), f, args…), peer.limited(rove::within(5ms)).
//
// A limit is for all of a call: meeting its node again, waiting for room in its mailbox, sending, and the answer. It begins where it is
// used and not where it is made. `timed_out` when it is up; the error says whether the call was sent.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace rove {

struct Within {
    std::int64_t ns;  // negative: for ever
};

namespace detail {
template <typename Duration>
std::int64_t ns_of(Duration time) {
    return std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}
}  // namespace detail

template <typename Rep, typename Period>
[[nodiscard]] Within within(std::chrono::duration<Rep, Period> time) {
    return {detail::ns_of(time)};
}

}  // namespace rove
