// Packages that were built with options of the compiler that add to a program what no node has: both forms run, without it.
#include <gtest/gtest.h>

#include "../node/process.hpp"

namespace rove::test {
namespace {

class CompilersOptions : public testing::TestWithParam<const char*> {};

TEST_P(CompilersOptions, AddNothingThatANodeWouldNeed) {
    const std::string path = package("elsewhere", {std::string("--flag=") + GetParam()});
    const Ran shown = run({rove(), "inspect", path});
    EXPECT_EQ(shown.out.find("__stack_chk"), std::string::npos) << shown.out;
    for (const char* forms : {"image", "bitcode"}) {
        const NodeProcess node({"--forms", forms});
        const Ran ran = run({rove(), "call", node.address(), path + ":elsewhere", "--payload-text", "4"});
        EXPECT_EQ(ran.out, "5\n") << forms << ": " << ran.err << node.log();
    }
}

INSTANTIATE_TEST_SUITE_P(Jit, CompilersOptions,
                         testing::Values("-O2", "-fsanitize=kcfi", "-fstack-protector-strong",
                                         "-fstack-protector-all"));

}  // namespace
}  // namespace rove::test
