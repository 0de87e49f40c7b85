// From the bitcode of a package's sources to the two forms of its code, both out of one optimised module.
#pragma once

#include "code/jit/jit.hpp"

namespace rove::code::jit {

[[nodiscard]] Result<Prepared> prepare(const PrepareRequest& request);

}  // namespace rove::code::jit
