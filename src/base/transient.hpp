// Which errors are transient: the one place that decides it.
#pragma once

#include "rove/error.hpp"

namespace rove {

// Whether the same attempt may succeed later, because room may have been freed by then. Such an error is never kept as the answer to later
// attempts, and the peer whose frame caused it is not at fault.
[[nodiscard]] inline bool is_transient(const Error& error) noexcept {
    return error.code() == ErrorCode::overloaded;
}

}  // namespace rove
