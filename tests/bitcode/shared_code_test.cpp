#include "bitcode/optimised.hpp"
#include "extraction/shared.hpp"
#include "ir.hpp"

namespace rove::bitcode {
namespace {

// An inline function as a compiler leaves it, one that it calls, and a function of the file's own.
constexpr const char* kProgram = R"(
define linkonce_odr i32 @leaf(i32 %n) {
  %local = alloca i32
  store i32 %n, ptr %local
  %a = load i32, ptr %local
  %b = add i32 %a, 1
  ret i32 %b
}
define linkonce_odr i32 @shared(i32 %n) {
  %local = alloca i32
  store i32 %n, ptr %local
  %a = load i32, ptr %local
  %b = call i32 @leaf(i32 %a)
  ret i32 %b
}
define internal i32 @own(i32 %n) {
  %local = alloca i32
  store i32 %n, ptr %local
  %a = load i32, ptr %local
  ret i32 %a
}
define linkonce_odr i32 @plain(i32 %n) optnone noinline {
  %local = alloca i32
  store i32 %n, ptr %local
  %a = load i32, ptr %local
  ret i32 %a
}
define linkonce_odr i32 @unreached(i32 %n) {
  ret i32 %n
}
define i32 @root(i32 %n) {
  %a = call i32 @shared(i32 %n)
  %b = call i32 @own(i32 %a)
  %c = call i32 @plain(i32 %b)
  ret i32 %c
}
)";

class SharedCodeOf : public testing::Test {
protected:
    void optimise() { ASSERT_TRUE(SharedCode(program_.modules()).optimise({&function("root")})); }
    llvm::Function& function(const std::string& name) { return program_.function(name); }
    ProgramOf program_{{kProgram}};
};

TEST_F(SharedCodeOf, IsOptimisedWithWhatItCalls) {
    optimise();
    EXPECT_EQ(function("shared").getInstructionCount(), 2U) << "the sum of what it called, and its return";
    EXPECT_TRUE(is_optimised(function("shared")));
    EXPECT_TRUE(is_optimised(function("leaf")));
}

TEST_F(SharedCodeOf, LeavesTheRestAsItIs) {
    optimise();
    EXPECT_FALSE(is_optimised(function("own"))) << "only this program has it";
    EXPECT_FALSE(is_optimised(function("root")));
    EXPECT_FALSE(is_optimised(function("plain"))) << "its source says so";
    EXPECT_EQ(function("plain").getInstructionCount(), 4U);
    EXPECT_FALSE(is_optimised(function("unreached")));
    EXPECT_TRUE(function("unreached").isMaterializable()) << "nor is it read";
}

TEST_F(SharedCodeOf, KeepsItsLinkageAndItsFunctions) {
    optimise();
    EXPECT_TRUE(function("shared").hasLinkOnceODRLinkage());
    EXPECT_TRUE(function("leaf").hasLinkOnceODRLinkage()) << "another file's may be another";
    EXPECT_TRUE(function("own").hasInternalLinkage());
    EXPECT_TRUE(function("root").hasExternalLinkage());
}

}  // namespace
}  // namespace rove::bitcode
