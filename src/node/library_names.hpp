// Names that compilers' own libraries have in each program, where dlsym does not find them, or not as shipped code means them.
#pragma once

#include <vector>

#include "code/cache.hpp"

namespace rove {

// They belong to the node's table, ahead of whatever its process has under these names.
[[nodiscard]] std::vector<code::HostSymbol> library_symbols();

}  // namespace rove
