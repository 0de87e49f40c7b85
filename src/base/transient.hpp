// Which errors are transient: the one place that decides it.
#pragma once

#include "rove/error.hpp"

namespace rove {

// Whether the same attempt may succeed later, because others may have made room by then. Such an error is never kept as the answer to later
// attempts, and it is no fault of the peer whose frame met it.
[[nodiscard]] inline bool is_transient(const Error& error) noexcept {
    return error.code() == ErrorCode::overloaded;
}

}  // namespace rove
