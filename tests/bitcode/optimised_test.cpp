// Which functions of a program are optimised before they travel.
#include <gtest/gtest.h>

#include <string>

#include "bitcode/compiler.hpp"
#include "compiler_test.hpp"
#include "offload.hpp"

namespace rove::bitcode {
namespace {

// A constant is seen to be one only by an optimiser.
constexpr const char* kSees = "{ return n + __builtin_constant_p(of); }\n";
constexpr const char* kSends = R"(
static int asks(int n) { return sees(n, 3); }
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<asks>::run};
)";

class OptimisedTest : public CompilerTest<> {
protected:
    // asks(5), as a node runs it.
    int asked(const ByteBuffer& program) {
        const auto all = compiler_->extract_all({.from = {"asks", program}});
        EXPECT_TRUE(all && all->size() == 1) << (all ? "" : all.error().message());
        if (!all || all->size() != 1) return -1;
        const auto prepared = compiler_->prepare({.triple = "x86_64-linux-gnu",
                                                  .modules = {all->front().bitcode},
                                                  .interface = false,
                                                  .entries = all->front().entries});
        EXPECT_TRUE(prepared) << prepared.error().message();
        if (!prepared) return -1;
        const auto compiled = compiler_->compile(
            {.name = "asks", .bitcode = prepared->bitcode, .resolve = [](std::string_view) { return nullptr; }});
        EXPECT_TRUE(compiled) << compiled.error().message();
        if (!compiled) return -1;
        int result = 0;
        using Run = void (*)(void*, int*, std::size_t);
        reinterpret_cast<Run>((*compiled)->find(prepared->entries.front()))(nullptr, &result, 5);
        return result;
    }
};

TEST_F(OptimisedTest, WhatItsAuthorMarksIsNot) {
    const std::string sees = std::string("static int sees(int n, int of) ") + kSees;
    EXPECT_EQ(asked(bitcode_of("plain.cpp", kOffload + sees + kSends)), 6);
    EXPECT_EQ(asked(bitcode_of("marked.cpp", kOffload + ("[[clang::optnone]] " + sees) + kSends)), 5);
}

TEST_F(OptimisedTest, AFileThatHasNothingElseKeepsItsMarks) {
    ByteBuffer program = bitcode_of("sends.cpp", std::string(kOffload) + "int sees(int n, int of);" + kSends);
    const ByteBuffer marked =
        bitcode_of("alone.cpp", std::string("[[clang::optnone]] int sees(int n, int of) ") + kSees);
    program.insert(program.end(), marked.begin(), marked.end());
    EXPECT_EQ(asked(program), 5);
}

TEST_F(OptimisedTest, WhatWasCompiledWithoutOptimisingIs) {
    const std::string text =
        std::string(kOffload) + "static int sees(int n, int of) " + kSees + "int other = sees(1, 1);\n" + kSends;
    EXPECT_EQ(asked(bitcode_of("debug.cpp", text, "x86_64-linux-gnu", "-O0")), 6);
}

// Its entry is a function's with brackets in its name.
TEST_F(OptimisedTest, AssemblyWithOperandsTravels) {
    const std::string sees =
        "static int sees(int n, int of) { asm(\"addl %1, %0\" : \"+r\"(n) : \"r\"(of)); return n; }\n";
    EXPECT_EQ(asked(bitcode_of("operands.cpp", kOffload + sees + kSends)), 8);
}

}  // namespace
}  // namespace rove::bitcode
