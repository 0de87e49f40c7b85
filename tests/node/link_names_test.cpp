// LinkNames, by itself.
#include "peer/link_names.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "../seed.hpp"

namespace rove::test {
namespace {

// Names that are looked for at the same place first.
std::vector<NodeId> names_that_collide(std::size_t count) {
    constexpr NodeId kInverse = 0x0E8B'2F51U;  // of the multiplier in LinkNames
    std::vector<NodeId> names;
    for (NodeId i = 0; i < count; ++i)
        names.push_back(kInverse * (0xFFFF'0000U + i));  // the last place: they wrap around
    return names;
}

TEST(LinkNames, HasWhatWasSetUntilItIsErased) {
    LinkNames names;
    EXPECT_FALSE(names.of(0));
    names.set(0, 0);
    names.set(7, 63);
    EXPECT_EQ(names.of(0), 0U);
    EXPECT_EQ(names.of(7), 63U);
    names.set(7, 2);
    EXPECT_EQ(names.of(7), 2U);
    names.erase(7, 63);
    EXPECT_EQ(names.of(7), 2U) << "another engine has it by now";
    names.erase(7, 2);
    EXPECT_FALSE(names.of(7));
    EXPECT_EQ(names.of(0), 0U);
}

TEST(LinkNames, FindsNamesBehindOthersThatAreErased) {
    const std::vector<NodeId> all = names_that_collide(20);
    for (std::size_t erased = 0; erased < all.size(); ++erased) {
        LinkNames names;
        for (const NodeId name : all) names.set(name, 1);
        names.erase(all[erased], 1);
        for (const NodeId name : all) EXPECT_EQ(names.of(name).has_value(), name != all[erased]) << name;
    }
}

TEST(LinkNames, IsWhatAMapIs) {
    std::mt19937 random(seed());
    LinkNames names;
    std::map<NodeId, unsigned> expected;
    const std::vector<NodeId> crowded = names_that_collide(64);
    for (int i = 0; i < 100'000; ++i) {
        const NodeId name = i % 2 == 0 ? crowded[random() % crowded.size()] : static_cast<NodeId>(random() % 3000);
        const unsigned engine = random() % 4;
        if (random() % 3 != 0) {
            names.set(name, engine);
            expected[name] = engine;
        } else if (const auto has = expected.find(name); has != expected.end()) {
            names.erase(name, has->second);
            expected.erase(has);
        }
        const NodeId asked = i % 3 == 0 ? name : crowded[random() % crowded.size()];
        const auto has = expected.find(asked);
        ASSERT_EQ(names.of(asked), has != expected.end() ? std::optional(has->second) : std::nullopt)
            << "seed " << seed();
    }
}

TEST(LinkNames, RefusesMoreThanItHasRoomFor) {
    LinkNames names;
    for (NodeId name = 0; name < LinkNames::kPlaces / 2; ++name) names.set(name, 0);
    EXPECT_THROW(names.set(LinkNames::kPlaces, 0), std::bad_alloc);
    names.set(5, 1);
    names.erase(6, 0);
    names.set(LinkNames::kPlaces, 3);
    EXPECT_EQ(names.of(LinkNames::kPlaces), 3U);
}

// Names that stay are found all the time, while others before and behind them come and go.
TEST(LinkNames, IsReadWhileItChanges) {
    const std::vector<NodeId> all = names_that_collide(12);
    LinkNames names;
    for (std::size_t i = 0; i < all.size(); ++i) names.set(all[i], i % 2);
    std::atomic<bool> stop{false};
    std::thread changes([&] {
        for (int i = 0; i < 200'000; ++i) {
            const NodeId name = all[2 * static_cast<std::size_t>(i % 6)];  // those of engine 0
            names.erase(name, 0);
            names.set(name, 0);
        }
        stop = true;
    });
    unsigned long wrong = 0, looks = 0;
    while (!stop)
        for (std::size_t i = 1; i < all.size(); i += 2, ++looks) wrong += names.of(all[i]) == 1U ? 0 : 1;
    changes.join();
    EXPECT_EQ(wrong, 0U);
    EXPECT_GT(looks, 0U);
}

}  // namespace
}  // namespace rove::test
