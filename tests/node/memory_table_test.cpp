// The table of the memory that peers have allocated: its bounds, and that what is freed or left behind is room again.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "services/memory.hpp"

namespace rove::test {
namespace {

std::ptrdiff_t descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

TEST(MemoryTable, BytesAreBoundedUntilTheyAreFreed) {
    constexpr std::size_t kBytes = 1UL << 20U;
    MemoryTable table(kBytes);
    const auto is_full = [&] {
        const auto more = table.allocate(1, 3);
        return !more && more.error().code() == ErrorCode::overloaded;
    };
    const auto a = table.allocate(kBytes / 2, 1), b = table.allocate(kBytes / 2, 2);
    ASSERT_TRUE(a && b);
    EXPECT_TRUE(is_full());
    table.free(a->key);
    const auto again = table.allocate(kBytes / 2, 1);
    ASSERT_TRUE(again);
    EXPECT_TRUE(is_full());
    table.peer_left(1);
    EXPECT_EQ(table.find(again->key), nullptr);
    ASSERT_TRUE(table.allocate(kBytes / 2, 3));
    EXPECT_TRUE(is_full());
    EXPECT_NE(table.find(b->key), nullptr);
}

// However much its owner had: it is gone for everybody at once, and is taken away in steps that are short each.
TEST(MemoryTable, WhatAnOwnerLeavesIsTakenAwayInSteps) {
    constexpr std::size_t kSteps = 3;
    MemoryTable table(1UL << 30U);
    const auto other = table.allocate(1, 2);
    ASSERT_TRUE(other);
    std::vector<std::uint64_t> keys;
    for (std::size_t i = 0; i < kSteps * MemoryTable::kDoomedMax; ++i) {
        const auto place = table.allocate(1, 1);
        ASSERT_TRUE(place);
        keys.push_back(place->key);
    }
    table.peer_left(1);
    for (const std::uint64_t key : keys) {
        ASSERT_EQ(table.find(key), nullptr);
        table.free(key);  // of no use any more, and no harm
    }
    const auto again = table.allocate(1, 1);  // the same peer, met again
    ASSERT_TRUE(again);
    for (std::size_t i = 0; i < kSteps; ++i) EXPECT_EQ(table.sweep(), MemoryTable::kDoomedMax);
    EXPECT_EQ(table.sweep(), 0U);
    EXPECT_NE(table.find(other->key), nullptr);
    EXPECT_NE(table.find(again->key), nullptr);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(table.allocate(MemoryTable::kDoomedBytesMax, 3));
    table.peer_left(3);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(table.sweep(), 1U);
    EXPECT_EQ(table.sweep(), 0U);
}

std::size_t pages_of(std::uint64_t inode) {
    std::ifstream maps("/proc/self/smaps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find(" " + std::to_string(inode) + " ") == std::string::npos) continue;
        while (std::getline(maps, line))
            if (line.starts_with("Rss:")) return std::stoul(line.substr(4)) / 4;
    }
    return 0;
}

// A large one goes in another thread, because the kernel may wait for a peer that has its file open; one that somebody uses keeps what it has.
TEST(MemoryTable, ALargeBlockIsGivenBackElsewhere) {
    constexpr std::size_t kParts = 3, kBytes = kParts * MemoryTable::kDoomedBytesMax, kPage = 4096;
    MemoryTable table(2 * kBytes);
    const auto place = table.allocate(kBytes, 1);
    ASSERT_TRUE(place);
    std::shared_ptr<Block> used = table.find(place->key);
    std::memset(used->bytes().data(), 'x', kBytes);
    ASSERT_EQ(pages_of(place->inode), kBytes / kPage);
    const auto in_use = table.allocate(kBytes, 2);
    ASSERT_TRUE(in_use);
    const std::shared_ptr<Block> user = table.find(in_use->key);
    std::memset(user->bytes().data(), 'y', kBytes);
    used.reset();
    table.peer_left(1);
    EXPECT_EQ(table.sweep(), 1U);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    auto next = table.allocate(kBytes, 3);  // it counts until it has gone
    while (!next && std::chrono::steady_clock::now() < limit) next = table.allocate(kBytes, 3);
    EXPECT_TRUE(next);
    EXPECT_EQ(pages_of(place->inode), 0U);
    table.peer_left(2);
    EXPECT_EQ(table.sweep(), 1U);
    EXPECT_FALSE(table.has_work() && table.sweep() > 0);
    EXPECT_EQ(user->bytes().back(), std::byte{'y'});
}

// It counts until it has gone: peers that come and go do not have more than all may.
TEST(MemoryTable, WhatAnOwnerLeftCountsUntilItIsGone) {
    constexpr std::size_t kBytes = 1UL << 20U;
    MemoryTable table(4 * kBytes);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(table.allocate(kBytes, 1));
    table.peer_left(1);
    ASSERT_TRUE(table.has_work());
    const auto next = table.allocate(4 * kBytes, 2);  // which takes it away for this
    ASSERT_TRUE(next);
    EXPECT_EQ(table.sweep(), 0U);
    EXPECT_FALSE(table.allocate(1, 3));
}

TEST(MemoryTable, OnePeerHasAShareOfTheBuffers) {
    MemoryTable table(1UL << 30U);
    for (std::size_t i = 0; i < MemoryTable::kBlocksOfPeerMax; ++i) ASSERT_TRUE(table.allocate(1, 1)) << i;
    EXPECT_FALSE(table.allocate(1, 1));
    EXPECT_TRUE(table.allocate(1, 2));
    table.peer_left(1);
    EXPECT_TRUE(table.allocate(1, 1));
}

TEST(MemoryTable, MappingsAreBoundedAndThenItIsTheHeap) {
    constexpr std::size_t kBytes = 16 * 1024;
    MemoryTable table(2 * kBytes * MemoryTable::kMappingsMax);
    std::uint64_t one = 0;
    for (std::size_t i = 0; i < MemoryTable::kMappingsMax; ++i) {
        const auto place = table.allocate(kBytes, 1);
        ASSERT_TRUE(place);
        ASSERT_NE(place->pid, 0) << i;
        one = place->key;
    }
    const auto beyond = table.allocate(kBytes, 1);
    ASSERT_TRUE(beyond);
    EXPECT_EQ(beyond->pid, 0);
    table.free(one);
    const auto again = table.allocate(kBytes, 1);
    ASSERT_TRUE(again);
    EXPECT_NE(again->pid, 0);
}

// Mappings that have gone, in each way in which they go, and those that could not be made.
TEST(MemoryTable, OnlyMappingsThatAreThereAreCounted) {
    constexpr std::size_t kBytes = 16 * 1024;
    MemoryTable table(2 * kBytes * MemoryTable::kMappingsMax);
    const auto is_mapped = [&] {
        const auto place = table.allocate(kBytes, 1);
        if (place) table.free(place->key);
        return place && place->pid != 0;
    };
    for (std::size_t i = 0; i < MemoryTable::kMappingsMax; ++i) ASSERT_TRUE(is_mapped()) << i << " were freed";
    for (std::size_t i = 0; i < MemoryTable::kMappingsMax; ++i) ASSERT_TRUE(table.allocate(kBytes, 2));
    EXPECT_FALSE(is_mapped());
    table.peer_left(2);
    while (table.sweep() > 0) {
    }
    EXPECT_TRUE(is_mapped()) << "their owner has gone";
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool any = false;
    for (std::size_t i = 0; i < MemoryTable::kMappingsMax; ++i) any = is_mapped() || any;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_FALSE(any) << "there were no descriptors for them";
    EXPECT_TRUE(is_mapped()) << "those that could not be made are counted";
}

TEST(MemoryTable, FilesAreOpenUntilTheyAreMappedAndNeverMany) {
    MemoryTable table(1UL << 30U);
    const std::ptrdiff_t before = descriptors();
    std::vector<std::uint64_t> keys;
    for (std::size_t i = 0; i < 2 * MemoryTable::kUnmappedFilesMax; ++i) {
        const auto place = table.allocate(16 * 1024, 1);
        ASSERT_TRUE(place);
        keys.push_back(place->key);
    }
    EXPECT_GT(descriptors(), before);
    EXPECT_LE(descriptors(), before + static_cast<std::ptrdiff_t>(MemoryTable::kUnmappedFilesMax));
    for (const std::uint64_t key : keys) table.mapped(key);
    EXPECT_EQ(descriptors(), before);
}

}  // namespace
}  // namespace rove::test
