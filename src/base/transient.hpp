// Which errors pass: the one place that decides it.
#pragma once

#include "rove/error.hpp"

namespace rove {

// Whether the same attempt may succeed later, because others may have made room by then. Nobody keeps such an error as the answer to
// later attempts, and a peer that has sent something is not to blame for it.
[[nodiscard]] inline bool is_transient(const Error& error) noexcept {
    return error.code() == ErrorCode::overloaded;
}

}  // namespace rove
