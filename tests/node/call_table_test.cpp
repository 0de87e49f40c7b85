// The table of calls in flight, by itself.
#include <gtest/gtest.h>

#include "node/begun_call.hpp"

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
        return table.gather(*table.flying(id), 0, wire::kMessageBytesMax, part) == CallTable::Gathered::taken;
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
    using enum CallTable::Gathered;
    EXPECT_EQ(table.gather(slot, 10, 30, part), wrong) << "not the first";
    EXPECT_EQ(table.gather(slot, 0, 30, ByteBuffer(31)), wrong) << "more than the total at once";
    EXPECT_EQ(table.gather(slot, 0, 30, part), taken);
    EXPECT_EQ(table.gather(slot, 20, 30, part), wrong) << "one is left out";
    EXPECT_EQ(table.gather(slot, 10, 31, part), wrong) << "another total";
    EXPECT_EQ(table.gather(slot, 10, 30, ByteBuffer(21)), wrong) << "more than the total";
    EXPECT_EQ(table.gather(slot, 10, 30, ByteBuffer(20)), taken);
}

TEST(CallTable, ACallThatIsNotSentGivesItsSlotBack) {
    CallTable table(1);
    {
        const auto begun = BegunCall::in(table, nullptr, true);
        ASSERT_TRUE(begun);
        EXPECT_EQ(table.used(), 1U);
        EXPECT_NE(table.flying(begun->id()), nullptr);
        EXPECT_EQ(BegunCall::in(table, nullptr, false)->id().generation, 0U);
        EXPECT_EQ(table.used(), 1U) << "nobody waits for the other one";
    }
    EXPECT_EQ(table.used(), 0U);
    const auto sent = BegunCall::in(table, nullptr, true)->sent();
    EXPECT_EQ(table.used(), 1U);
    EXPECT_NE(table.flying(sent), nullptr);
}

// Results that nobody takes hold memory, whether they came in parts or whole.
TEST(CallTable, WholeResultsTakeOfTheRoomThereIs) {
    CallTable table(1, std::make_shared<SpareMemory>(), 1000);
    const auto first = table.begin(nullptr), second = table.begin(nullptr), third = table.begin(nullptr);
    table.end(*table.flying(*first), ByteBuffer(600, std::byte{1}));
    table.end(*table.flying(*second), ByteBuffer(600, std::byte{2}));
    EXPECT_FALSE(table.find(*first)->error());
    EXPECT_EQ(table.find(*first)->data().size(), 600U);
    ASSERT_TRUE(table.find(*second)->error());
    EXPECT_EQ(table.find(*second)->error()->code(), ErrorCode::failed);
    EXPECT_NE(table.find(*second)->error()->message().find("600 bytes here"), std::string::npos);
    const auto small = table.begin(nullptr);
    table.end(*table.flying(*small), ByteBuffer(kSmallResultBytes));
    EXPECT_FALSE(table.find(*small)->error());
    table.release(*first);
    table.end(*table.flying(*third), ByteBuffer(600, std::byte{3}));
    EXPECT_FALSE(table.find(*third)->error());
}

// A result whose first parts came by a link that was cut is sent again from its beginning.
TEST(CallTable, PartsMayBeginAgain) {
    CallTable table(1, std::make_shared<SpareMemory>(), 40);
    using enum CallTable::Gathered;
    const auto id = table.begin(nullptr);
    CallSlot& slot = *table.flying(*id);
    EXPECT_EQ(table.gather(slot, 0, 30, ByteBuffer(10, std::byte{1})), taken);
    EXPECT_EQ(table.gather(slot, 10, 30, ByteBuffer(10, std::byte{1})), taken);
    EXPECT_EQ(table.gather(slot, 0, 20, ByteBuffer(10)), wrong) << "of another total";
    EXPECT_EQ(table.gather(slot, 0, 30, {}), wrong) << "an empty one";
    EXPECT_EQ(table.gather(slot, 0, 30, ByteBuffer(31)), wrong) << "more than the total";
    EXPECT_EQ(table.gather(slot, 0, 30, ByteBuffer(10, std::byte{2})), taken);
    EXPECT_EQ(table.gather(slot, 20, 30, ByteBuffer(10)), wrong) << "those after it come again, too";
    EXPECT_EQ(table.gather(slot, 10, 30, ByteBuffer(20, std::byte{2})), taken);
    slot.end_gathered();
    ASSERT_FALSE(slot.error());
    EXPECT_EQ(slot.data().size(), 30U);
    EXPECT_EQ(slot.data()[0], std::byte{2});
    table.release(*id);
    EXPECT_EQ(table.gather(*table.flying(*table.begin(nullptr)), 0, 40, ByteBuffer(1)), taken) << "it was counted once";
}

// Who asks for more large results than it takes loses those, and not the peer that sends them.
TEST(CallTable, AResultBeyondTheRoomForThemEndsItsCallOnly) {
    CallTable table(1, std::make_shared<SpareMemory>(), 100);
    using enum CallTable::Gathered;
    CallSlot& held = *table.flying(*table.begin(nullptr));
    const CallTable::Id held_id = held.id();
    EXPECT_EQ(table.gather(held, 0, 60, ByteBuffer(30)), taken);
    const auto id = table.begin(nullptr);
    ASSERT_TRUE(id);
    EXPECT_EQ(table.gather(*table.flying(*id), 0, 41, ByteBuffer(41)), ended);
    EXPECT_EQ(table.flying(*id), nullptr) << "its other parts are late";
    ASSERT_NE(table.find(*id), nullptr);
    ASSERT_TRUE(table.find(*id)->error());
    EXPECT_EQ(table.find(*id)->error()->code(), ErrorCode::failed);
    EXPECT_EQ(table.gather(held, 30, 60, ByteBuffer(30)), taken) << "one that was begun goes on";
    table.release(held_id);
    const auto next = table.begin(nullptr);
    ASSERT_TRUE(next);
    EXPECT_EQ(table.gather(*table.flying(*next), 0, 100, ByteBuffer(100)), taken) << "there is room again";
}

// Who waits for a result that comes in parts may have them where it wants them, and then they take no room here.
TEST(CallTable, PartsGoToWhoeverWaitsForThem) {
    CallTable table(1, std::make_shared<SpareMemory>(), 10);
    using enum CallTable::Gathered;
    struct Taking {
        std::size_t bytes = 0, total = 0, refuse_at = SIZE_MAX;
        ResultSink::Took refuses_as = ResultSink::Took::refused;
        static ResultSink::Took take(void* self, Bytes part, std::size_t total) {
            auto& taking = *static_cast<Taking*>(self);
            taking.bytes += part.size();
            taking.total = total;
            return taking.bytes < taking.refuse_at ? ResultSink::Took::accepted : taking.refuses_as;
        }
    } taking;
    const ResultSink sink{&Taking::take, &taking};
    CallSlot& slot = *table.flying(*table.begin(nullptr));
    slot.sink = &sink;
    EXPECT_EQ(table.gather(slot, 0, 300, ByteBuffer(100)), taken);
    EXPECT_EQ(table.gather(slot, 100, 300, ByteBuffer(201)), wrong);
    EXPECT_EQ(table.gather(slot, 100, 300, ByteBuffer(200)), taken);
    slot.end_gathered();
    EXPECT_FALSE(slot.error());
    EXPECT_TRUE(slot.in_sink());
    EXPECT_EQ(taking.bytes, 300U);
    EXPECT_EQ(taking.total, 300U);

    CallSlot& half = *table.flying(*table.begin(nullptr));
    half.sink = &sink;
    EXPECT_EQ(table.gather(half, 0, 300, ByteBuffer(100)), taken);
    half.end_gathered();
    EXPECT_TRUE(half.error()) << "the rest did not come";

    CallSlot& refused = *table.flying(*table.begin(nullptr));
    refused.sink = &sink;
    taking = {.refuse_at = 1};
    EXPECT_EQ(table.gather(refused, 0, 300, ByteBuffer(100)), ended);
    ASSERT_TRUE(refused.error());
    EXPECT_EQ(refused.error()->code(), ErrorCode::invalid);
    CallSlot& without_memory = *table.flying(*table.begin(nullptr));
    without_memory.sink = &sink;
    taking = {.refuse_at = 1, .refuses_as = ResultSink::Took::no_memory};
    EXPECT_EQ(table.gather(without_memory, 0, 300, ByteBuffer(100)), ended);
    ASSERT_TRUE(without_memory.error());
    EXPECT_EQ(without_memory.error()->code(), ErrorCode::failed);

    // What a sink has been given cannot be given again.
    CallSlot& again = *table.flying(*table.begin(nullptr));
    again.sink = &sink;
    taking = {};
    EXPECT_EQ(table.gather(again, 0, 300, ByteBuffer(100)), taken);
    EXPECT_EQ(table.gather(again, 0, 300, ByteBuffer(100)), ended) << "the link was cut";
    EXPECT_EQ(taking.bytes, 100U);
    ASSERT_TRUE(again.error());
    EXPECT_EQ(again.error()->code(), ErrorCode::disconnected);

    // Nobody waits when the first part comes: it stays here until somebody does.
    CallSlot& kept = *table.flying(*table.begin(nullptr));
    EXPECT_EQ(table.gather(kept, 0, 10, ByteBuffer(4, std::byte{7})), taken);
    kept.sink = &sink;
    EXPECT_EQ(table.gather(kept, 4, 10, ByteBuffer(6, std::byte{7})), taken);
    kept.end_gathered();
    EXPECT_FALSE(kept.in_sink());
    EXPECT_EQ(kept.data().size(), 10U);
}

}  // namespace
}  // namespace rove::test
