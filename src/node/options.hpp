// Whether a node can be made as its NodeOptions say: one place for programs, the C ABI and the command's flags.
#pragma once

#include "base/result.hpp"
#include "rove/node.hpp"

namespace rove {

// Functions that run long at once: each has a thread with a stack of 8 MiB of addresses, 512 MiB together.
inline constexpr unsigned kThreadsMax = 64;

// invalid: an option is outside its choices or range; the message names both.
[[nodiscard]] Status check_options(const NodeOptions& options);

}  // namespace rove
