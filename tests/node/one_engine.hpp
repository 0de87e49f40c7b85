// For tests of nodes with one engine each: they look at the node's first engine, or count threads and places, of which each engine has its own.
#pragma once

#include <algorithm>

#include "fabrics.hpp"

namespace rove::test {

inline constexpr std::array kFabricsWithOneEngine{kLoopback, kChaos, kShm, kTcp};
static_assert(std::ranges::all_of(kFabricsWithOneEngine, [](const TestFabric& fabric) { return fabric.engines == 1; }));

}  // namespace rove::test
