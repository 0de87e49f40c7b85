// Packages that make way for new ones, and those that stay.
#include "cache_fixture.hpp"

namespace rove::code {
namespace {

class MakingWay : public CacheTest {};

// A node whose functions were all called once takes new ones: those that idle make way, with their code.
TEST_F(MakingWay, WhatIdlesMakesWayForWhatIsNew) {
    CodeOptions given = options(Tiers::image);
    given.packages_max = 5;
    CodeCache cache(given);
    for (int i = 0; i < 30; ++i) {
        const auto package = build("idle" + std::to_string(i) + ".c", entry("go", std::to_string(i)));
        ASSERT_TRUE(cache.add(package, false)) << i;
        ASSERT_EQ(call(cache, *cache.find("idle" + std::to_string(i) + ":go")), i);
    }
    EXPECT_NE(cache.find("idle29:go"), nullptr);
    EXPECT_EQ(cache.find("idle0:go"), nullptr);
}

// Statics and interfaces stay. They leave half of all places to others.
TEST_F(MakingWay, WhatStaysLeavesHalfToOthers) {
    CodeOptions given = options(Tiers::image);
    given.packages_max = 8;
    CodeCache cache(given);
    for (int i = 0; i < 2; ++i) {
        const std::string name = "given" + std::to_string(i);
        const auto interface = build(name + ".c", "long " + name + "(long n) { return n; }", true);
        ASSERT_TRUE(cache.add(interface, false));
        ASSERT_TRUE(cache.load_interface(interface));
    }
    std::string error;
    for (int i = 0; i < 3; ++i) {
        const std::string name = "counts" + std::to_string(i);
        ASSERT_TRUE(cache.add(build(name + ".c", "static long kept;" + entry("go", "++kept")), false));
        Function& go = *cache.find(name + ":go");
        if (i < 2)
            EXPECT_EQ(call(cache, go), 1);
        else
            error = error_of(cache, go);
    }
    EXPECT_NE(error.find("package counts2 is to stay for as long as node 7 runs (it has statics, is pinned, or is an "
                         "interface), and 4 packages"),
              std::string::npos)
        << error;
    const auto third = build("third.c", "long third(long n) { return n; }", true);
    ASSERT_TRUE(cache.add(third, false));
    const auto loaded = cache.load_interface(third);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), ErrorCode::overloaded);
    for (int i = 0; i < 20; ++i) {
        const std::string name = "plain" + std::to_string(i);
        ASSERT_TRUE(cache.add(build(name + ".c", entry("go", std::to_string(i))), false)) << i;
        EXPECT_EQ(call(cache, *cache.find(name + ":go")), i);
    }
    EXPECT_EQ(call(cache, *cache.find("counts0:go")), 2) << "its statics are those that it had";
}

}  // namespace
}  // namespace rove::code
