// Taking functions, and all that they reach, out of the bitcode that a program carries of itself.
#pragma once

#include "code/jit/jit.hpp"

namespace rove::code::jit {

[[nodiscard]] Result<std::vector<Extracted>> extract(const ExtractRequest& request);

}  // namespace rove::code::jit
