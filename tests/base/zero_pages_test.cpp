#include "base/zero_pages.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>

namespace rove {
namespace {

std::size_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::size_t all = 0, resident = 0;
    statm >> all >> resident;
    return resident * static_cast<std::size_t>(getpagesize());
}

TEST(ZeroPages, TakeMemoryAsTheyAreWritten) {
    constexpr std::size_t kMany = 32UL << 20U;  // 256 MiB
    const std::size_t before = resident_bytes();
    ZeroPages<std::atomic<std::uint64_t>> pages(kMany);
    EXPECT_EQ(pages[0], 0U);
    EXPECT_EQ(pages[kMany - 1], 0U);
    pages[kMany / 2] = 7;
    EXPECT_EQ(pages[kMany / 2], 7U);
    EXPECT_EQ(pages[kMany / 2 + 1], 0U);
    EXPECT_LT(resident_bytes(), before + (64UL << 20U));
}

}  // namespace
}  // namespace rove
