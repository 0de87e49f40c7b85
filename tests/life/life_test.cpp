// A minute of mixed life, a third of it on every fabric, between processes. `life` by hand takes any length and replays a seed.
#include <gtest/gtest.h>

#include "../node/process.hpp"
#include "fabrics.hpp"

namespace rove::test {
namespace {

struct Nodes {
    const char* fabric;
    unsigned engines;
};
void PrintTo(const Nodes& nodes, std::ostream* out) {
    *out << nodes.fabric << ", " << nodes.engines << " engines";
}

class Life : public testing::TestWithParam<Nodes> {};

TEST_P(Life, EachNumberRunsAtMostOnceAndEachCallHasOneEnd) {
    // Killed nodes and clients have nothing to say of leaks or races, and the others are given time for their reports.
    const auto& [fabric, engines] = GetParam();
    const Ran ran = run({built("life"), "--fabric", fabric, "--engines", std::to_string(engines), "--seconds", "20"},
                        std::chrono::seconds(240));
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
}

std::vector<Nodes> nodes_of_each_kind() {
    std::vector<Nodes> all;
    for (const auto& [name, choice] : life::kFabrics) all.push_back({name, 1});
    all.push_back({"shm", 4});
    return all;
}
std::string name_of(const Nodes& nodes) {
    return nodes.fabric + (nodes.engines > 1 ? "_" + std::to_string(nodes.engines) + "_engines" : std::string());
}
INSTANTIATE_TEST_SUITE_P(Fabrics, Life, testing::ValuesIn(nodes_of_each_kind()),
                         [](const testing::TestParamInfo<Nodes>& info) { return name_of(info.param); });

}  // namespace
}  // namespace rove::test
