// Names of the compilers' own libraries that shipped code uses and that dlsym does not find in this process, or finds with another meaning.
#pragma once

#include <vector>

#include "code/cache.hpp"

namespace rove {

// For the node's symbol table, where they take precedence over what the process has under these names.
[[nodiscard]] std::vector<code::HostSymbol> library_symbols();

}  // namespace rove
