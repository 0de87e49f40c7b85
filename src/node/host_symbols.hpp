// The functions of librove that shipped code calls, by name.
#pragma once

#include <vector>

#include "code/cache.hpp"

namespace rove {

// The names that shipped code links to before any other: rove_*.
[[nodiscard]] std::vector<code::HostSymbol> host_symbols();

}  // namespace rove
