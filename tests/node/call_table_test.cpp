// The table of calls in flight, by itself.
#include <gtest/gtest.h>

#include "node/calls.hpp"

namespace rove::test {
namespace {

TEST(CallTable, ASlotThatIsUsedAgainIsAnotherCall) {
    CallTable table(7);
    const auto first = table.begin(nullptr);
    ASSERT_TRUE(first);
    table.release(*first);
    const auto second = table.begin(nullptr);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->slot, first->slot) << "the test is about one slot";
    EXPECT_EQ(table.flying(*first), nullptr) << "a late reply would end another call";
    EXPECT_NE(table.flying(*second), nullptr);
    table.release(*first);
    EXPECT_NE(table.flying(*second), nullptr) << "who forgets the first call frees the second";
    EXPECT_EQ(table.used(), 1U);
}

// The bound on results that come in parts is of those that are there, not of all there ever were.
TEST(CallTable, TheRoomForResultsInPartsIsGivenBack) {
    CallTable table(1);
    const ByteBuffer part(1);
    const auto gather = [&](CallTable::Id id) {
        return table.gather(*table.flying(id), 0, wire::kMessageBytesMax, part);
    };
    for (std::size_t i = 0; i <= kGatheredBytesMax / wire::kMessageBytesMax; ++i) {
        const auto id = table.begin(nullptr);
        ASSERT_TRUE(id);
        ASSERT_TRUE(gather(*id)) << "after " << i;
        table.release(*id);
    }
}

TEST(CallTable, PartsComeInTheirOrder) {
    CallTable table(1);
    const ByteBuffer part(10);
    CallSlot& slot = *table.flying(*table.begin(nullptr));
    EXPECT_FALSE(table.gather(slot, 10, 30, part)) << "not the first";
    EXPECT_TRUE(table.gather(slot, 0, 30, part));
    EXPECT_FALSE(table.gather(slot, 20, 30, part)) << "one is left out";
    EXPECT_FALSE(table.gather(slot, 10, 31, part)) << "another total";
    EXPECT_FALSE(table.gather(slot, 10, 30, ByteBuffer(21))) << "more than the total";
    EXPECT_TRUE(table.gather(slot, 10, 30, ByteBuffer(20)));
}

}  // namespace
}  // namespace rove::test
