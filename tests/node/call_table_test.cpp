// The table of calls in flight, by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "peer/begun_call.hpp"
#include "peer/peer_state.hpp"

namespace rove {
struct CallSlotView {
    static std::size_t bytes_kept(const CallSlot& slot) { return slot.large_.capacity(); }
};
}  // namespace rove

namespace rove::test {
namespace {

// A slot is used again and again, and small results would keep what a large one took.
TEST(CallTable, AResultThatNobodyTakesLeavesNoMemory) {
    CallTable table(7);
    const CallId call = value_or_throw(table.begin(nullptr));
    CallSlot& slot = *table.flying(call);
    table.end(slot, ByteBuffer(200'000));
    EXPECT_GE(CallSlotView::bytes_kept(slot), 200'000U);
    table.release(call);
    EXPECT_EQ(CallSlotView::bytes_kept(slot), 0U);
}

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

// Whoever kept the id of a call that is over reaches no later one, also where the generations begin again from 0.
TEST(CallTable, AnIdThatIsOverNamesNothing) {
    for (const std::uint32_t first : {7U, UINT32_MAX - 1}) {
        CallTable table(first);
        std::vector<CallId> over;
        for (std::uint32_t use = 0; use < 5; ++use) {
            const auto begun = table.begin(nullptr);
            ASSERT_TRUE(begun);
            ASSERT_EQ(begun->generation, first + use);
            for (const CallId id : over) {
                EXPECT_EQ(table.find(id), nullptr);
                EXPECT_EQ(table.flying(id), nullptr);
                table.limit(id, TimePoint{});
                table.release(id);
            }
            EXPECT_NE(table.flying(*begun), nullptr);
            EXPECT_EQ(table.first_deadline(), std::nullopt);
            table.release(*begun);
            EXPECT_EQ(table.flying(*begun), nullptr);
            over.push_back(*begun);
        }
        EXPECT_EQ(table.used(), 0U);
        EXPECT_EQ(table.find({.slot = 65535, .generation = first}), nullptr) << "there is no such slot yet";
    }
}

TEST(CallTable, ASlotThatIsUsedAgainKeepsNothing) {
    CallTable table(1);
    std::size_t outbox_bytes = 0;
    PeerState peer(outbox_bytes);
    const auto first = table.begin(&peer);
    CallSlot& slot = *table.flying(*first);
    const ResultSink sink{};
    slot.sink = &sink;
    slot.notify = {[](void*) {}, nullptr};
    slot.brings_memory = true;
    table.limit(*first, TimePoint{});
    table.end(slot, ByteBuffer(1000, std::byte{1}));
    table.release(*first);
    const auto second = table.begin(nullptr);
    ASSERT_EQ(table.flying(*second), &slot) << "the test is about one slot";
    EXPECT_EQ(slot.peer, nullptr);
    EXPECT_EQ(slot.sink, nullptr);
    EXPECT_EQ(slot.notify.function, nullptr);
    EXPECT_FALSE(slot.brings_memory);
    EXPECT_TRUE(slot.data().empty());
    EXPECT_EQ(table.first_deadline(), std::nullopt);
    slot.end(Error(ErrorCode::failed, "the second"));
    table.release(*second);
    EXPECT_FALSE(table.find(*table.begin(nullptr))->error());
}

// Each has an id of its own, until there are no more; then one that ends makes room for one.
TEST(CallTable, ItHasSoManyAtOnceAndNoMore) {
    CallTable table(3);
    std::vector<CallId> ids;
    std::set<std::uint16_t> slots;
    for (std::size_t i = 0; i < kCallsMax; ++i) {
        const auto begun = table.begin(nullptr);
        ASSERT_TRUE(begun) << i;
        ids.push_back(*begun);
        slots.insert(begun->slot);
    }
    EXPECT_EQ(slots.size(), kCallsMax) << "two calls have one slot";
    EXPECT_EQ(table.used(), kCallsMax);
    for (int i = 0; i < 2; ++i) {
        const auto refused = table.begin(nullptr);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
        EXPECT_NE(refused.error().message().find("65536 calls"), std::string::npos) << refused.error().message();
    }
    table.flying(ids[300])->end(Bytes());
    EXPECT_FALSE(table.begin(nullptr)) << "its result has not been taken";
    table.release(ids[300]);
    const auto next = table.begin(nullptr);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->slot, ids[300].slot);
    EXPECT_NE(next->generation, ids[300].generation);
    EXPECT_FALSE(table.begin(nullptr));
    table.release(*next);
    for (const CallId id : ids) table.release(id);
    EXPECT_EQ(table.used(), 0U);
}

TEST(CallTable, NoneBeginsInOneThatIsClosed) {
    CallTable table(1);
    const auto begun = table.begin(nullptr);
    table.close();
    const auto refused = table.begin(nullptr);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::cancelled);
    EXPECT_NE(table.flying(*begun), nullptr) << "one that had begun goes on";
}

// What fails is what flies, to one peer or to all; each is named once.
TEST(CallTable, CallsToOnePeerFailTogether) {
    CallTable table(1);
    std::size_t outbox_bytes = 0;
    PeerState one(outbox_bytes), other(outbox_bytes);
    const auto begin = [&](PeerState* peer) { return *table.begin(peer); };
    std::vector<CallId> to_one, to_other;
    for (int i = 0; i < 300; ++i) {  // over the end of a chunk
        to_one.push_back(begin(&one));
        to_other.push_back(begin(&other));
    }
    const CallId to_nobody = begin(nullptr);  // this node's own
    table.flying(to_one[0])->end(Bytes());
    table.release(to_one[1]);
    std::vector<CallId> ended;
    const auto remember = [&ended](const CallSlot& slot) { ended.push_back(slot.id()); };
    table.fail_all(&one, Error(ErrorCode::disconnected, "it has gone"), remember);
    ASSERT_EQ(ended.size(), to_one.size() - 2);
    EXPECT_FALSE(table.find(to_one[0])->error()) << "it had ended before";
    for (std::size_t i = 2; i < to_one.size(); ++i) {
        EXPECT_EQ(std::ranges::count(ended, to_one[i].slot, &CallId::slot), 1);
        EXPECT_EQ(table.flying(to_one[i]), nullptr);
        ASSERT_NE(table.find(to_one[i]), nullptr) << "whoever waits for it finds nothing";
        ASSERT_TRUE(table.find(to_one[i])->error());
        EXPECT_EQ(table.find(to_one[i])->error()->code(), ErrorCode::disconnected);
    }
    for (const CallId id : to_other) EXPECT_NE(table.flying(id), nullptr);
    ended.clear();
    table.fail_all(&one, Error(ErrorCode::disconnected, "once more"), remember);
    EXPECT_TRUE(ended.empty());
    EXPECT_EQ(table.find(to_one[2])->error()->message(), "it has gone") << "the first end counts";
    table.fail_all(nullptr, Error(ErrorCode::cancelled, "the node ends"), remember);
    EXPECT_EQ(ended.size(), to_other.size() + 1);
    EXPECT_EQ(table.find(to_nobody)->error()->code(), ErrorCode::cancelled);
}

TEST(CallTable, DeadlinesComeInTheirOrder) {
    CallTable table(1);
    const TimePoint now = Clock::now();
    const auto in = [now](int s) { return now + std::chrono::seconds(s); };
    EXPECT_EQ(table.first_deadline(), std::nullopt);
    std::vector<CallId> ids;
    for (int i = 0; i < 6; ++i) ids.push_back(*table.begin(nullptr));
    const auto limit = [&](std::size_t call, int s) { table.limit(ids[call], in(s)); };
    limit(0, 30), limit(1, 10), limit(2, 50), limit(3, 20), limit(4, 40);
    limit(1, 60);  // the earlier one holds
    limit(2, 5);   // and counts once: it is the first now
    table.flying(ids[5])->end(Bytes());
    limit(5, 1);            // it has ended
    table.release(ids[3]);  // it ends with its call
    const auto again = *table.begin(nullptr);
    ASSERT_EQ(again.slot, ids[3].slot) << "the test is about one slot";
    std::vector<std::pair<std::uint16_t, TimePoint>> order;
    for (; table.first_deadline(); table.drop_first()) order.emplace_back(table.first().slot, *table.first_deadline());
    const std::vector<std::pair<std::uint16_t, TimePoint>> wanted{
        {ids[2].slot, in(5)}, {ids[1].slot, in(10)}, {ids[0].slot, in(30)}, {ids[4].slot, in(40)}};
    EXPECT_EQ(order, wanted);
    limit(0, 70);  // dropped is as if there had been none
    EXPECT_EQ(table.first_deadline(), in(70));
    table.release(ids[1]);  // its own was dropped: nobody else's goes with it
    EXPECT_EQ(table.first_deadline(), in(70));
    table.release(ids[0]);
    EXPECT_EQ(table.first_deadline(), std::nullopt);
}

// The bound on results that come in parts is of those that are there, not of all there ever were.
TEST(CallTable, TheRoomForResultsInPartsIsGivenBack) {
    CallTable table(1);
    const ByteBuffer part(1);
    const auto gather = [&](CallId id) {
        return table.reassemble(*table.flying(id), 0, wire::kMessageBytesMax, part) == CallTable::Reassembled::taken;
    };
    for (std::size_t i = 0; i <= kReassembledBytesMax / wire::kMessageBytesMax; ++i) {
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
    using enum CallTable::Reassembled;
    EXPECT_EQ(table.reassemble(slot, 10, 30, part), wrong) << "not the first";
    EXPECT_EQ(table.reassemble(slot, 0, 30, ByteBuffer(31)), wrong) << "more than the total at once";
    EXPECT_EQ(table.reassemble(slot, 0, 30, part), taken);
    EXPECT_EQ(table.reassemble(slot, 20, 30, part), wrong) << "one is left out";
    EXPECT_EQ(table.reassemble(slot, 10, 31, part), wrong) << "another total";
    EXPECT_EQ(table.reassemble(slot, 10, 30, ByteBuffer(21)), wrong) << "more than the total";
    EXPECT_EQ(table.reassemble(slot, 10, 30, ByteBuffer(20)), taken);
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
    using enum CallTable::Reassembled;
    const auto id = table.begin(nullptr);
    CallSlot& slot = *table.flying(*id);
    EXPECT_EQ(table.reassemble(slot, 0, 30, ByteBuffer(10, std::byte{1})), taken);
    EXPECT_EQ(table.reassemble(slot, 10, 30, ByteBuffer(10, std::byte{1})), taken);
    EXPECT_EQ(table.reassemble(slot, 0, 20, ByteBuffer(10)), wrong) << "of another total";
    EXPECT_EQ(table.reassemble(slot, 0, 30, {}), wrong) << "an empty one";
    EXPECT_EQ(table.reassemble(slot, 0, 30, ByteBuffer(31)), wrong) << "more than the total";
    EXPECT_EQ(table.reassemble(slot, 0, 30, ByteBuffer(10, std::byte{2})), taken);
    EXPECT_EQ(table.reassemble(slot, 20, 30, ByteBuffer(10)), wrong) << "those after it come again, too";
    EXPECT_EQ(table.reassemble(slot, 10, 30, ByteBuffer(20, std::byte{2})), taken);
    slot.end_reassembled();
    ASSERT_FALSE(slot.error());
    EXPECT_EQ(slot.data().size(), 30U);
    EXPECT_EQ(slot.data()[0], std::byte{2});
    table.release(*id);
    EXPECT_EQ(table.reassemble(*table.flying(*table.begin(nullptr)), 0, 40, ByteBuffer(1)), taken)
        << "it was counted once";
}

// Who asks for more large results than it takes loses those, and not the peer that sends them.
TEST(CallTable, AResultBeyondTheRoomForThemEndsItsCallOnly) {
    CallTable table(1, std::make_shared<SpareMemory>(), 100);
    using enum CallTable::Reassembled;
    CallSlot& held = *table.flying(*table.begin(nullptr));
    const CallId held_id = held.id();
    EXPECT_EQ(table.reassemble(held, 0, 60, ByteBuffer(30)), taken);
    const auto id = table.begin(nullptr);
    ASSERT_TRUE(id);
    EXPECT_EQ(table.reassemble(*table.flying(*id), 0, 41, ByteBuffer(41)), ended);
    EXPECT_EQ(table.flying(*id), nullptr) << "its other parts are late";
    ASSERT_NE(table.find(*id), nullptr);
    ASSERT_TRUE(table.find(*id)->error());
    EXPECT_EQ(table.find(*id)->error()->code(), ErrorCode::failed);
    EXPECT_EQ(table.reassemble(held, 30, 60, ByteBuffer(30)), taken) << "one that was begun goes on";
    table.release(held_id);
    const auto next = table.begin(nullptr);
    ASSERT_TRUE(next);
    EXPECT_EQ(table.reassemble(*table.flying(*next), 0, 100, ByteBuffer(100)), taken) << "there is room again";
}

// Who waits for a result that comes in parts may have them where it wants them, and then they take no room here.
TEST(CallTable, PartsGoToWhoeverWaitsForThem) {
    CallTable table(1, std::make_shared<SpareMemory>(), 10);
    using enum CallTable::Reassembled;
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
    EXPECT_EQ(table.reassemble(slot, 0, 300, ByteBuffer(100)), taken);
    EXPECT_EQ(table.reassemble(slot, 100, 300, ByteBuffer(201)), wrong);
    EXPECT_EQ(table.reassemble(slot, 100, 300, ByteBuffer(200)), taken);
    slot.end_reassembled();
    EXPECT_FALSE(slot.error());
    EXPECT_TRUE(slot.in_sink());
    EXPECT_EQ(taking.bytes, 300U);
    EXPECT_EQ(taking.total, 300U);

    CallSlot& half = *table.flying(*table.begin(nullptr));
    half.sink = &sink;
    EXPECT_EQ(table.reassemble(half, 0, 300, ByteBuffer(100)), taken);
    half.end_reassembled();
    EXPECT_TRUE(half.error()) << "the rest did not come";

    CallSlot& refused = *table.flying(*table.begin(nullptr));
    refused.sink = &sink;
    taking = {.refuse_at = 1};
    EXPECT_EQ(table.reassemble(refused, 0, 300, ByteBuffer(100)), ended);
    ASSERT_TRUE(refused.error());
    EXPECT_EQ(refused.error()->code(), ErrorCode::invalid);
    CallSlot& without_memory = *table.flying(*table.begin(nullptr));
    without_memory.sink = &sink;
    taking = {.refuse_at = 1, .refuses_as = ResultSink::Took::no_memory};
    EXPECT_EQ(table.reassemble(without_memory, 0, 300, ByteBuffer(100)), ended);
    ASSERT_TRUE(without_memory.error());
    EXPECT_EQ(without_memory.error()->code(), ErrorCode::failed);

    // What a sink has been given cannot be given again.
    CallSlot& again = *table.flying(*table.begin(nullptr));
    again.sink = &sink;
    taking = {};
    EXPECT_EQ(table.reassemble(again, 0, 300, ByteBuffer(100)), taken);
    EXPECT_EQ(table.reassemble(again, 0, 300, ByteBuffer(100)), ended) << "the link was cut";
    EXPECT_EQ(taking.bytes, 100U);
    ASSERT_TRUE(again.error());
    EXPECT_EQ(again.error()->code(), ErrorCode::disconnected);

    // Nobody waits when the first part comes: it stays here until somebody does.
    CallSlot& kept = *table.flying(*table.begin(nullptr));
    EXPECT_EQ(table.reassemble(kept, 0, 10, ByteBuffer(4, std::byte{7})), taken);
    kept.sink = &sink;
    EXPECT_EQ(table.reassemble(kept, 4, 10, ByteBuffer(6, std::byte{7})), taken);
    kept.end_reassembled();
    EXPECT_FALSE(kept.in_sink());
    EXPECT_EQ(kept.data().size(), 10U);
}

TEST(CallTable, EndsAreToldInTheirOrderButForThoseThatAreReleased) {
    CallTable table(1);
    std::vector<CallId> calls;
    for (int i = 0; i < 6; ++i) calls.push_back(value_or_throw(table.begin(nullptr)));
    for (const int number : {4, 0, 2, 5, 1}) {
        table.end(*table.flying(calls[static_cast<std::size_t>(number)]), {});
        table.add_to_tell(*table.find(calls[static_cast<std::size_t>(number)]));
    }
    for (const std::size_t released : {4UL, 2UL, 1UL})
        table.release(calls[released]);  // the first, one between, the last
    std::vector<std::uint16_t> told;
    while (table.has_to_tell()) told.push_back(table.take_to_tell().index);
    EXPECT_EQ(told, (std::vector<std::uint16_t>{calls[0].slot, calls[5].slot}));
    table.add_to_tell(*table.find(calls[0]));
    table.add_to_tell(*table.find(calls[0]));
    EXPECT_EQ(table.take_to_tell().index, calls[0].slot);
    EXPECT_FALSE(table.has_to_tell()) << "it was added twice, and is there once";
}

}  // namespace
}  // namespace rove::test
