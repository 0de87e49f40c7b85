// The package's C and C++ header: names and ids of its entries, for programs that call them. A pure function.
#pragma once

#include <string>

#include "package/package.hpp"

namespace rove::toolchain {

[[nodiscard]] std::string header_of(const PackageStore& package);

}  // namespace rove::toolchain
