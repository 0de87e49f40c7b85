// The fabrics that the behaviour tests of nodes run on: one list. Shared memory and TCP join any two processes of this machine; loopback
// and chaos (src/fabric/loopback) the nodes of this one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string_view>

#include "base/result.hpp"
#include "fabric/fabric.hpp"
#include "rove/rove.hpp"

namespace rove::test {

// Fabrics of this process that meet one another. Each has a seed of its own, made from seed() (../seed.hpp); those of another `kRun` have
// others.
[[nodiscard]] Result<std::unique_ptr<fabric::Fabric>> open_loopback();
template <std::uint64_t kRun>
[[nodiscard]] Result<std::unique_ptr<fabric::Fabric>> open_chaos();
[[nodiscard]] Result<std::unique_ptr<fabric::Fabric>> open_chaos_that_cuts();  // each link, after some dozens of frames

struct TestFabric {
    const char* name;
    std::string_view lane;                             // what Peer::lane() says of it
    FabricChoice choice = FabricChoice::best;          // of those that programs can choose …
    decltype(&open_loopback) opens_in_test = nullptr;  // … or one of the tests' own

    constexpr operator FabricChoice() const {
        return choice;
    }  // NOLINT(google-explicit-constructor): NodeOptions::fabric
    [[nodiscard]] constexpr bool joins_processes() const { return opens_in_test == nullptr; }
    // A node over it. Throws what Node does.
    [[nodiscard]] Node start(NodeOptions options) const;
};
inline void PrintTo(const TestFabric& fabric, std::ostream* out) {
    *out << fabric.name;
}

inline constexpr TestFabric kLoopback{.name = "loopback", .lane = "direct", .opens_in_test = &open_loopback};
inline constexpr TestFabric kChaos{.name = "chaos", .lane = "message", .opens_in_test = &open_chaos<0>};
inline constexpr TestFabric kChaosAgain{.name = "chaos_again", .lane = "message", .opens_in_test = &open_chaos<1>};
inline constexpr TestFabric kChaosOnceMore{
    .name = "chaos_once_more", .lane = "message", .opens_in_test = &open_chaos<2>};
inline constexpr TestFabric kChaosThatCuts{
    .name = "chaos_that_cuts", .lane = "message", .opens_in_test = &open_chaos_that_cuts};
inline constexpr TestFabric kShm{.name = "shm", .lane = "direct", .choice = FabricChoice::shm};
inline constexpr TestFabric kTcp{.name = "tcp", .lane = "message", .choice = FabricChoice::tcp};
inline constexpr TestFabric kUcx{.name = "ucx", .lane = "direct", .choice = FabricChoice::ucx};

// Not kChaosThatCuts: there a call may end as disconnected.
inline constexpr std::array kFabrics{kLoopback, kChaos, kShm, kTcp};
// The same with several seeds, for suites of which no test takes a second.
inline constexpr std::array kFabricsAndSeeds{kLoopback, kChaos, kChaosAgain, kChaosOnceMore, kShm, kTcp};
// For tests that start processes of their own, or meet nodes by hand.
inline constexpr std::array kFabricsOfProcesses{kShm, kTcp};

}  // namespace rove::test
