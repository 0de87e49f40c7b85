// Rove's log: stderr, quiet unless something is wrong, and apart from whatever log the program has.
#pragma once

#include <spdlog/logger.h>

namespace rove {

// Named "rove". Level warn until NodeOptions::log says otherwise.
[[nodiscard]] spdlog::logger& log();

}  // namespace rove
