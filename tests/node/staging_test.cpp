// Payloads that arrive in parts: their memory, and who is too slow with them.
#include "peer/staging.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace rove::test {
namespace {

using namespace std::chrono_literals;

std::size_t resident_bytes() {
    std::size_t total = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

class StagedPayloads : public testing::Test {
protected:
    using Next = Staging::Next;
    // Asks every 100 ms, as a node does, for so long.
    std::optional<std::string> look_for(std::chrono::milliseconds time, Next next = Next::nothing,
                                        bool room_wanted = false) {
        std::optional<std::string> slow;
        for (const TimePoint end = now_ + time; now_ < end && !slow;)
            slow = staging_.too_slow(now_ += 100ms, next, room_wanted);
        return slow;
    }
    void begin(std::uint64_t number, std::size_t bytes = wire::kMessageBytesMax) {
        staging_.begin(number, *memory_->take(bytes), now_);
        announced_ = bytes;
    }
    bool add(std::uint64_t number, std::size_t offset, std::size_t bytes) {
        return staging_.add({.number = number,
                             .offset = static_cast<std::uint32_t>(offset),
                             .total_bytes = static_cast<std::uint32_t>(announced_)},
                            ByteBuffer(bytes, std::byte{7}));
    }
    std::shared_ptr<SpareMemory> memory_ = std::make_shared<SpareMemory>();
    Staging staging_;
    TimePoint now_ = Clock::now();
    std::size_t announced_ = 0;
};

TEST_F(StagedPayloads, ThatAreReadElsewhereCountAndHaveTheSameRate) {
    staging_.begin_elsewhere(1, kStagedBytesMax - 1'000'000, now_);
    EXPECT_TRUE(staging_.may_begin(1'000'000));
    EXPECT_FALSE(staging_.may_begin(1'000'001));
    EXPECT_FALSE(staging_.take({1, kStagedBytesMax - 1'000'000})) << "it is not here";
    EXPECT_FALSE(staging_.take({1, 0})) << "nor is nothing, and its bytes would be counted for ever";
    EXPECT_FALSE(look_for(59s));
    staging_.came_elsewhere(60 * kStagingRateMin + kStagingRateMin);
    EXPECT_FALSE(look_for(59s)) << "it goes on";
    EXPECT_TRUE(look_for(70s));
    EXPECT_EQ(staging_.forget(1), kStagedBytesMax - 1'000'000);
    EXPECT_TRUE(staging_.is_empty());
    EXPECT_TRUE(staging_.may_begin(kStagedBytesMax));
}

TEST_F(StagedPayloads, ThatAreReadElsewhereAreNamedByTheirSize) {
    staging_.begin_elsewhere(1, 1'000'000, now_);
    std::optional<std::string> slow;
    for (int i = 0; i < 100 && !slow; ++i) {
        staging_.came_elsewhere(60 * kStagingRateMin);
        slow = look_for(30s);
    }
    ASSERT_TRUE(slow);
    EXPECT_NE(slow->find("a payload of 1000000 bytes"), std::string::npos) << *slow;
}

TEST_F(StagedPayloads, ComeInTheirOrderAndAreTakenWhole) {
    begin(1, 1'000'000);
    EXPECT_FALSE(add(2, 0, 10)) << "of no payload";
    EXPECT_FALSE(add(1, 10, 10)) << "not the next one";
    EXPECT_TRUE(add(1, 0, 400'000));
    EXPECT_FALSE(add(1, 0, 10)) << "twice";
    EXPECT_FALSE(add(1, 400'000, 600'001)) << "more than was announced";
    EXPECT_FALSE(staging_.take({1, 1'000'000})) << "half of it";
    EXPECT_TRUE(add(1, 400'000, 600'000));
    EXPECT_FALSE(staging_.take({1, 999'999}));
    const auto whole = staging_.take({1, 1'000'000});
    ASSERT_TRUE(whole);
    EXPECT_TRUE(
        std::all_of(whole->bytes().begin(), whole->bytes().end(), [](std::byte b) { return b == std::byte{7}; }));
    EXPECT_TRUE(staging_.is_empty());
    EXPECT_EQ(staging_.bytes(), 0U);
}

TEST_F(StagedPayloads, AreBoundedInBytesAndInNumber) {
    for (std::uint64_t number = 0; number < kStagedBytesMax / wire::kMessageBytesMax; ++number) {
        EXPECT_TRUE(staging_.may_begin(wire::kMessageBytesMax));
        begin(number);
    }
    EXPECT_FALSE(staging_.may_begin(1));
    EXPECT_EQ(staging_.forget(3), wire::kMessageBytesMax);
    EXPECT_EQ(staging_.forget(3), 0U);
    EXPECT_TRUE(staging_.may_begin(1));
    EXPECT_EQ(staging_.clear(), kStagedBytesMax - wire::kMessageBytesMax);
    for (std::uint64_t number = 0; number < kStagedMax; ++number) begin(number, 1);
    EXPECT_FALSE(staging_.may_begin(1));
}

// Memory grows with what has arrived.
TEST_F(StagedPayloads, WhatIsOnlyAnnouncedTakesNoMemory) {
    const std::size_t before = resident_bytes();
    for (std::uint64_t number = 0; number < 8; ++number) {
        begin(number);
        EXPECT_TRUE(add(number, 0, 64));
    }
    // A page of 2 MiB for each at most, where 256 MiB were announced.
    EXPECT_LT(resident_bytes(), before + 32 * 1024 * 1024);
}

TEST_F(StagedPayloads, WhoTricklesIsTooSlow) {
    begin(1);
    std::size_t offset = 0;
    std::optional<std::string> slow;
    for (int i = 0; i < 30 && !slow; ++i) {  // a byte every 3 s
        ASSERT_TRUE(add(1, offset++, 1));
        slow = look_for(3s);
    }
    ASSERT_TRUE(slow);
    EXPECT_NE(slow->find("of the payloads that it has begun"), std::string::npos) << *slow;
    EXPECT_NE(slow->find(std::to_string(kStagingRateMin)), std::string::npos) << *slow;
    EXPECT_GT(offset, 15U) << "nobody waited: a minute is given";
}

TEST_F(StagedPayloads, WhoStandsStillMakesWaySoonerWhereOthersWait) {
    begin(1);
    ASSERT_TRUE(add(1, 0, 65536));  // less than is due within that time
    EXPECT_FALSE(look_for(9s, Next::nothing, true));
    const auto slow = look_for(2s, Next::nothing, true);
    ASSERT_TRUE(slow);
    EXPECT_NE(slow->find("others wait"), std::string::npos) << *slow;
}

TEST_F(StagedPayloads, WhoIsSlowButHonestIsNot) {
    begin(1);
    std::size_t offset = 0;
    for (int second = 0; second < 300; ++second) {
        ASSERT_TRUE(add(1, offset, 2 * kStagingRateMin));
        offset += 2 * kStagingRateMin;
        ASSERT_FALSE(look_for(1s, Next::nothing, second % 2 == 0)) << second;
    }
}

// What lies in the mailbox already waits for this node; and when nobody looked, nobody took anything.
TEST_F(StagedPayloads, OnlyTimeInWhichThePeerIsWaitedForCounts) {
    begin(1);
    EXPECT_FALSE(look_for(3600s, Next::other, true));
    now_ += 3600s;
    EXPECT_FALSE(look_for(9s, Next::nothing, true));
    EXPECT_TRUE(look_for(2s, Next::nothing, true));
}

// Who begins one payload more before it has sent the others keeps their room from others: honest peers do not.
TEST_F(StagedPayloads, WhoWaitsForMoreRoomThanItHoldsMakesWay) {
    begin(1);
    EXPECT_FALSE(look_for(9s, Next::waits_here, true));
    const auto slow = look_for(2s, Next::waits_here, true);
    ASSERT_TRUE(slow);
    EXPECT_NE(slow->find("waits for room for one more"), std::string::npos) << *slow;
}

TEST_F(StagedPayloads, WhoHoldsNothingMayWaitForRoom) {
    EXPECT_FALSE(look_for(3600s, Next::waits_here, true));
}

// A payload just over a power of two takes nearly twice its size.
TEST_F(StagedPayloads, CountWhatTheyTakeOfTheMachine) {
    const std::size_t bytes = wire::kMessageBytesMax / 2 + 1;
    ASSERT_EQ(SpareMemory::room_for(bytes), wire::kMessageBytesMax);
    for (std::uint64_t number = 0; number < kStagedBytesMax / wire::kMessageBytesMax; ++number) begin(number, bytes);
    EXPECT_EQ(staging_.bytes(), kStagedBytesMax);
    EXPECT_FALSE(staging_.may_begin(1));
}

// The least rate must be enough for the largest payload.
TEST_F(StagedPayloads, TheLargestAtTheLeastRateIsInTime) {
    begin(1);
    for (std::size_t offset = 0; offset < wire::kMessageBytesMax; offset += kStagingRateMin) {
        ASSERT_TRUE(add(1, offset, kStagingRateMin));
        ASSERT_FALSE(look_for(1s, Next::nothing, true)) << offset;
    }
    EXPECT_TRUE(staging_.take({1, wire::kMessageBytesMax}));
}

// The rate is kept by other payloads, or all of it is there, but its call does not come.
TEST_F(StagedPayloads, NoneIsKeptForEver) {
    begin(1);
    std::size_t offset = 0;
    begin(2);
    std::optional<std::string> slow;
    int second = 0;
    for (; second < 2 * kStagedAgeMax.count() && !slow; ++second) {
        if (offset + 2 * kStagingRateMin > wire::kMessageBytesMax) {
            staging_.forget(2);
            begin(2);
            offset = 0;
        }
        ASSERT_TRUE(add(2, offset, 2 * kStagingRateMin));
        offset += 2 * kStagingRateMin;
        slow = look_for(1s);
    }
    ASSERT_TRUE(slow);
    EXPECT_NE(slow->find("did not come within"), std::string::npos) << *slow;
    EXPECT_GE(second, kStagedAgeMax.count() - 1);
}

TEST_F(StagedPayloads, ANewOneBeginsWithAllItsTime) {
    begin(1);
    EXPECT_FALSE(look_for(9s, Next::nothing, true));
    staging_.clear();
    EXPECT_FALSE(look_for(100s, Next::nothing, true));
    begin(2);
    EXPECT_FALSE(look_for(9s, Next::nothing, true));
}

// ---- the memory

TEST(SpareMemory, IsUsedAgainAndNotKeptForEver) {
    const auto memory = std::make_shared<SpareMemory>();
    EXPECT_TRUE(memory->is_empty());
    std::byte* first = nullptr;
    {
        const auto taken = memory->take(3'000'000);
        ASSERT_TRUE(taken);
        EXPECT_EQ(taken->size(), 3'000'000U);
        first = taken->data();
    }
    EXPECT_FALSE(memory->is_empty());
    EXPECT_FALSE(memory->is_due(Clock::now()));
    {
        const auto again = memory->take(2'500'000);
        ASSERT_TRUE(again);
        EXPECT_EQ(again->data(), first);
        EXPECT_TRUE(memory->is_empty());
        const auto larger = memory->take(5'000'000);
        ASSERT_TRUE(larger);
        EXPECT_NE(larger->data(), first);
    }
    EXPECT_TRUE(memory->is_due(Clock::now() + kSpareFor + 1s));
    memory->trim(Clock::now() + kSpareFor + 1s);
    EXPECT_TRUE(memory->is_empty());
}

// A small payload in the place of a large one would keep all of its pages.
TEST(SpareMemory, GivesNoLargePlaceForASmallPayload) {
    const auto memory = std::make_shared<SpareMemory>();
    (void)*memory->take(wire::kMessageBytesMax);
    EXPECT_FALSE(memory->is_empty());
    const LargeBytes small = *memory->take(kMappedPayloadBytesMin);
    EXPECT_EQ(small.room(), kMappedPayloadBytesMin);
    const LargeBytes middle = *memory->take(wire::kMessageBytesMax / 2);
    EXPECT_EQ(middle.room(), wire::kMessageBytesMax / 2);
    const LargeBytes large = *memory->take(wire::kMessageBytesMax - 1);
    EXPECT_TRUE(memory->is_empty()) << "that one fits";
}

TEST(SpareMemory, KeepsNoMoreThanItsBound) {
    const auto memory = std::make_shared<SpareMemory>();
    {
        std::vector<LargeBytes> all;
        for (int i = 0; i < 8; ++i) all.push_back(*memory->take(wire::kMessageBytesMax));
        EXPECT_FALSE(memory->is_over());
    }
    EXPECT_TRUE(memory->is_over());
    memory->trim(Clock::now());
    EXPECT_FALSE(memory->is_over());
    EXPECT_FALSE(memory->is_empty());
}

TEST(SpareMemory, WhatIsSmallIsOnTheHeapAndGoesAtOnce) {
    const auto memory = std::make_shared<SpareMemory>();
    {
        auto taken = memory->take(100);
        ASSERT_TRUE(taken);
        LargeBytes moved = std::move(*taken);
        EXPECT_EQ(moved.size(), 100U);
        moved = LargeBytes();
        EXPECT_EQ(moved.size(), 0U);
    }
    EXPECT_TRUE(memory->is_empty());
}

}  // namespace
}  // namespace rove::test
