// Whether a node can be made as its NodeOptions say: one place for programs, the C ABI and the command's flags.
#pragma once

#include <chrono>

#include "base/result.hpp"
#include "rove/node.hpp"

namespace rove {

// Functions that run long at once: each has a thread with a stack of 8 MiB of addresses, 512 MiB together.
inline constexpr unsigned kThreadsMax = 64;

// Ten years: longer options are for ever, and neither overflow when they are added to what the clock says, nor four times over.
inline constexpr std::chrono::milliseconds kOptionTimeMax = std::chrono::hours(10 * 366 * 24);

// invalid: an option is outside its choices or range; the message names both.
[[nodiscard]] Status check_options(const NodeOptions& options);

}  // namespace rove
