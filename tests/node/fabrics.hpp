// The fabrics that the behaviour tests of nodes run on: one list. Shared memory and TCP join any two processes of this machine; loopback
// and chaos (src/fabric/loopback) the nodes of this one.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
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
    unsigned engines = 1;                              // of each node

    constexpr operator FabricChoice() const {
        return choice;
    }  // NOLINT(google-explicit-constructor): NodeOptions::fabric
    [[nodiscard]] constexpr bool joins_processes() const { return opens_in_test == nullptr; }
    [[nodiscard]] constexpr bool is_chaos() const { return !joins_processes() && lane == "message"; }
    // A node over it. Throws what Node does.
    [[nodiscard]] Node start(NodeOptions options) const;
};
inline void PrintTo(const TestFabric& fabric, std::ostream* out) {
    *out << fabric.name;
}

inline constexpr TestFabric kLoopback{.name = "loopback", .lane = "direct", .opens_in_test = &open_loopback};
inline constexpr TestFabric kChaos{.name = "chaos", .lane = "message", .opens_in_test = &open_chaos<0>};
inline constexpr TestFabric kChaosOfTwoEngines{
    .name = "chaos_2_engines", .lane = "message", .opens_in_test = &open_chaos<1>, .engines = 2};
inline constexpr TestFabric kChaosOfFourEngines{
    .name = "chaos_4_engines", .lane = "message", .opens_in_test = &open_chaos<2>, .engines = 4};
inline constexpr TestFabric kChaosThatCuts{
    .name = "chaos_that_cuts", .lane = "message", .opens_in_test = &open_chaos_that_cuts};
inline constexpr TestFabric kShm{.name = "shm", .lane = "direct", .choice = FabricChoice::shm};
inline constexpr TestFabric kShmOfTwoEngines{
    .name = "shm_2_engines", .lane = "direct", .choice = FabricChoice::shm, .engines = 2};
inline constexpr TestFabric kTcp{.name = "tcp", .lane = "message", .choice = FabricChoice::tcp};
inline constexpr TestFabric kUcx{.name = "ucx", .lane = "direct", .choice = FabricChoice::ucx};

// The rule: a suite that says how nodes or typed calls behave runs on all of these (ROVE_ON_FABRICS). One with another list says beside it
// which property of those fabrics it needs, or that its tests take seconds. Not kChaosThatCuts: there a call may end as disconnected.
inline constexpr std::array kFabrics{kLoopback,        kChaos, kChaosOfTwoEngines, kChaosOfFourEngines, kShm,
                                     kShmOfTwoEngines, kTcp};
// For tests that take seconds, mostly because they wait for a bound of time. Their seed is another one in each run of the tests.
inline constexpr std::array kFabricsWithOneSeed{kLoopback, kChaos, kShm, kTcp};
// For what nodes do only where the sender writes into the receiver's memory itself.
inline constexpr std::array kDirectFabrics{kLoopback, kShm};
// For tests that start, stop or kill processes, or meet nodes by hand: the others are of one process.
inline constexpr std::array kFabricsOfProcesses{kShm, kTcp};

inline std::string fabric_name(const testing::TestParamInfo<TestFabric>& info) {
    return info.param.name;
}
#define ROVE_ON_THESE_FABRICS(suite, fabrics) \
    INSTANTIATE_TEST_SUITE_P(Fabrics, suite, testing::ValuesIn(fabrics), fabric_name)
#define ROVE_ON_FABRICS(suite) ROVE_ON_THESE_FABRICS(suite, kFabrics)
#define ROVE_ON_FABRICS_WITH_ONE_SEED(suite) ROVE_ON_THESE_FABRICS(suite, kFabricsWithOneSeed)
#define ROVE_ON_DIRECT_FABRICS(suite) ROVE_ON_THESE_FABRICS(suite, kDirectFabrics)
#define ROVE_ON_FABRICS_OF_PROCESSES(suite) ROVE_ON_THESE_FABRICS(suite, kFabricsOfProcesses)

}  // namespace rove::test
