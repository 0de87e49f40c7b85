// The functions of a port, as far as a test can check them; `rove bench` measures how fast its pauses are.
#include "arch/arch.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "arch/x86_extensions.hpp"

namespace rove::test {
namespace {

TEST(Arch, RestsEndWhetherOrNotAnythingIsWritten) {
    alignas(64) std::uint64_t word = 0;
    for (int i = 0; i < 1000; ++i) {
        arch::rest();
        arch::rest_briefly();
        arch::rest_until_written(word, [] { return false; });
    }
}

TEST(Arch, WhatIsWrittenIsSeen) {
    alignas(64) std::atomic<std::uint64_t> word{0};
    std::thread writer([&] {
        for (std::uint64_t i = 1; i <= 100; ++i) {
            word.store(i, std::memory_order_release);
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    });
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (word.load(std::memory_order_acquire) < 100 && std::chrono::steady_clock::now() < limit)
        arch::rest_until_written(reinterpret_cast<const std::uint64_t&>(word),
                                 [&] { return word.load(std::memory_order_acquire) == 100; });
    EXPECT_EQ(word.load(), 100U);
    writer.join();
}

TEST(Arch, APageIsTheKernels) {
    EXPECT_EQ(arch::page_bytes(), static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
}

TEST(Arch, TheCounterCountsTime) {
    const auto before = arch::ticks();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const auto between = arch::ticks();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_GT(between, before);
    EXPECT_GT(arch::ticks() - between, between - before) << "it stands, or goes backwards";
}

TEST(Arch, RoundingIsSetBackAndRestored) {
    ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
    const arch::FloatControls before;
    arch::FloatControls::set_standard();
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    before.restore();
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    arch::FloatControls::reset();
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(Arch, ACpuLacksWhatIsNoExtension) {
    EXPECT_FALSE(arch::cpu_has(""));
    EXPECT_FALSE(arch::cpu_has("avx2 "));
    EXPECT_FALSE(arch::cpu_has("an-extension-of-nobodys"));
}

TEST(Arch, NoExtensionIsListedTwice) {
    const std::set<std::string_view> all(arch::kX86Extensions.begin(), arch::kX86Extensions.end());
    EXPECT_EQ(all.size(), arch::kX86Extensions.size());
}

// What the kernel has found under the same name. (It hides what the system does not use, so the other direction says nothing.)
TEST(Arch, ACpuHasWhatTheKernelSays) {
    std::ifstream file("/proc/cpuinfo");
    std::set<std::string> flags;
    for (std::string line; std::getline(file, line) && flags.empty();) {
        if (!line.starts_with("flags")) continue;
        std::istringstream words(line.substr(line.find(':') + 1));
        for (std::string word; words >> word;) flags.insert(word);
    }
    if (arch::kName != "x86_64") GTEST_SKIP() << "the list is one of x86-64";
    ASSERT_FALSE(flags.empty());
    unsigned known = 0;
    for (const std::string_view each : arch::kX86Extensions) {
        std::string name(each);
        std::ranges::replace(name, '-', '_');
        std::string apart = name;  // avx512_fp16
        if (apart.starts_with("avx512")) apart.insert(6, "_");
        if (!flags.contains(name) && !flags.contains(apart)) continue;
        ++known;
        EXPECT_TRUE(arch::cpu_has(each)) << each;
    }
    EXPECT_GT(known, 10U);
}

TEST(Arch, SymbolsHaveAddresses) {
    for (const arch::Symbol& each : arch::compiler_symbols()) EXPECT_NE(each.address, nullptr) << each.name;
}

}  // namespace
}  // namespace rove::test
