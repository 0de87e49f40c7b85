// A minute of mixed life, a third of it on every fabric, between processes. `life` by hand takes any length and replays a seed.
#include <gtest/gtest.h>

#include "../node/process.hpp"
#include "fabrics.hpp"

namespace rove::test {
namespace {

class Life : public testing::TestWithParam<const char*> {};

TEST_P(Life, EachNumberRunsAtMostOnceAndEachCallHasOneEnd) {
    // Killed nodes and clients have nothing to say of leaks or races, and the others are given time for their reports.
    const Ran ran = run({built("life"), "--fabric", GetParam(), "--seconds", "20"}, std::chrono::seconds(240));
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
}

std::vector<const char*> fabric_names() {
    std::vector<const char*> names;
    for (const auto& [name, choice] : life::kFabrics) names.push_back(name);
    return names;
}
INSTANTIATE_TEST_SUITE_P(Fabrics, Life, testing::ValuesIn(fabric_names()),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

}  // namespace
}  // namespace rove::test
