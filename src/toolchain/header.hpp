// The package's header: names and ids of its entries for programs that are compiled against it.
#pragma once

#include <string>

#include "package/package.hpp"

namespace rove::toolchain {

[[nodiscard]] std::string header_of(const PackageStore& package);

}  // namespace rove::toolchain
