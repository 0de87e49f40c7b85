// From the bitcode of a package's sources to the two forms of its code, both out of one optimised module.
#pragma once

#include "base/result.hpp"
#include "bitcode/prepared.hpp"

namespace rove::bitcode {

[[nodiscard]] Result<Prepared> prepare(const PrepareRequest& request);

}  // namespace rove::bitcode
