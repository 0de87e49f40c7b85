// The packages of functions that were taken out of a program, one beside the other.
#include "toolchain/packer.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "../bitcode/compiler_test.hpp"
#include "../bitcode/offload.hpp"
#include "code/cache.hpp"
#include "workshop.hpp"

namespace rove::toolchain {
namespace {

class PackerTest : public bitcode::CompilerTest<> {
protected:
    void SetUp() override {
        CompilerTest::SetUp();
        ASSERT_EQ(setenv("ROVE_CACHE", (folder_.path() / "cache").c_str(), 1), 0);
    }
    void TearDown() override { unsetenv("ROVE_CACHE"); }

    // By the functions' names. functions: that are sent, with a comma between them.
    std::map<std::string, Packed> packed(const std::string& text, const std::string& functions) {
        std::string offloads;
        std::stringstream names(functions);
        std::string name;
        while (std::getline(names, name, ',')) offloads += "&rove::detail::Offload<" + name + ">::run, ";
        const ByteBuffer program =
            bitcode_of("program.cpp", bitcode::kOffload + text +
                                          "void (*offloads[])(rove_here*, const void*, size_t) = {" + offloads + "};");
        auto all = compiler_->extract_all({.from = {"program", program}});
        EXPECT_TRUE(all) << all.error().message();
        const Libraries libraries({}, [](const std::string&, const std::string&) { return false; });
        const std::vector<std::string> dependencies;
        Packer packer(*compiler_, folder_.path() / "program", libraries, dependencies);
        auto made = packer.pack(*all);
        EXPECT_TRUE(made) << made.error().message();
        std::map<std::string, Packed> by_name;
        if (all && made)
            for (std::size_t i = 0; i < all->size(); ++i)
                for (std::stringstream left(functions); std::getline(left, name, ',');)
                    if (mentions((*all)[i].facts.name, name)) by_name.emplace(name, (*made)[i]);
        return by_name;
    }
};

// LLVM says so when it writes machine code: the label is there twice, because the function that has it was copied into its caller twice.
TEST_F(PackerTest, WhatCannotBeCompiledStaysAndOthersTravel) {
    const auto all = packed(R"(
static inline __attribute__((always_inline)) int step(int n) { asm volatile("rove_label: nop"); return n + 1; }
static int twice(int n) { return step(n) + step(n + 1); }
static int plain(int n) { return n + 1; }
)",
                            "twice,plain");
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all.at("twice").package, nullptr);
    EXPECT_NE(all.at("twice").why_not.find("rove_label"), std::string::npos) << all.at("twice").why_not;
    EXPECT_NE(all.at("plain").package, nullptr) << all.at("plain").why_not;
}

TEST_F(PackerTest, SaysWhyThereIsNoImageEachTime) {
    for (int round = 0; round < 2; ++round) {
        const auto all = packed(R"(
static int large(int n) { static char zeros[80 << 20]; return zeros[n]++; }
static int plain(int n) { return n + 1; }
)",
                                "large,plain");
        ASSERT_EQ(all.size(), 2U);
        const Packed& large = all.at("large");
        ASSERT_NE(large.package, nullptr) << large.why_not;
        ASSERT_EQ(large.notes.size(), 1U) << round;
        EXPECT_EQ(large.notes.front(),
                  "no image: it has 83886080 bytes of statics; it travels as bitcode only, and its first call waits "
                  "for the compiler");
        EXPECT_TRUE(all.at("plain").notes.empty());
        EXPECT_EQ(all.at("plain").from_cache, round == 1);
    }
}

}  // namespace
}  // namespace rove::toolchain
