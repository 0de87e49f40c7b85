// Rove's log: stderr, quiet unless something is wrong, and separate from any log of the program's.
//
// Threads: any, also in the child of a fork. A line that stderr does not take at once is dropped and counted: no caller waits for its reader.
#pragma once

#include <spdlog/logger.h>

namespace rove {

// Named "rove". Level warn until NodeOptions::log changes it.
[[nodiscard]] spdlog::logger& log();

}  // namespace rove
