// Whether a node can be made as its NodeOptions say: one place for programs, the C ABI and the command's flags.
#pragma once

#include "base/result.hpp"
#include "rove/node.hpp"

namespace rove {

// Threads of a node's own: each has a stack of 8 MiB, and more than the machine has cores are of use for functions that wait.
inline constexpr unsigned kThreadsMax = 64;

// invalid: an option is outside its choices or range; the message names both.
[[nodiscard]] Status check_options(const NodeOptions& options);

}  // namespace rove
