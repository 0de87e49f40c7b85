// Why a function of rove/edge.h failed: what its caller gets from rove_last_failure().
//
// Threads: each has a failure of its own.
//
// Invariant: the code that is returned is the same whether or not there is memory for the message.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "rove/edge.h"

namespace rove {

// Each records the failure for this thread, and returns its code.
int failed(const Error& error) noexcept;
int failed(ErrorCode code, std::string_view message) noexcept;
// Takes no memory.
int failed_without_memory() noexcept;

}  // namespace rove
