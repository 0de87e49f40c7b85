// A module of one small function, for loading LLVM's code into memory before it is needed.
#pragma once

#include "base/bytes.hpp"

namespace rove::bitcode {

inline constexpr const char* kWarmFunction = "warm";

// Bitcode for this machine, which defines kWarmFunction.
[[nodiscard]] ByteBuffer warm_module();

}  // namespace rove::bitcode
