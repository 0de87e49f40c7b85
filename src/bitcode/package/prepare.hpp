// Makes the two forms of a package's code from the bitcode of its sources, both out of one optimised module.
#pragma once

#include "base/result.hpp"
#include "bitcode/prepared.hpp"

namespace rove::bitcode {

[[nodiscard]] Result<Prepared> prepare(const PrepareRequest& request);

}  // namespace rove::bitcode
