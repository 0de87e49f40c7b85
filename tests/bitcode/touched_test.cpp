#include "extraction/touched.hpp"

#include "ir.hpp"

namespace rove::bitcode {
namespace {

bool is_touched_by(const std::string& body, const std::string& more = "") {
    llvm::LLVMContext context;
    const auto module =
        parsed(context, "%Empty = type { i8 }\n@it = global %Empty zeroinitializer\ndeclare void @elsewhere(ptr)\n" +
                            more + "\ndefine ptr @uses(ptr %other) {\n" + body + "}\n");
    return is_touched(*module->getNamedGlobal("it"));
}

TEST(Touched, IsWhatIsReadOrWritten) {
    EXPECT_TRUE(is_touched_by("%a = load i8, ptr @it\nret ptr null\n"));
    EXPECT_TRUE(is_touched_by("store i8 1, ptr @it\nret ptr null\n"));
    EXPECT_TRUE(is_touched_by("%a = getelementptr i8, ptr @it, i64 0\nstore i8 1, ptr %a\nret ptr null\n"));
}

TEST(Touched, IsWhatGoesOutOfSight) {
    EXPECT_TRUE(is_touched_by("call void @elsewhere(ptr @it)\nret ptr null\n"));
    EXPECT_TRUE(is_touched_by("store ptr @it, ptr %other\nret ptr null\n"));
    EXPECT_TRUE(is_touched_by("ret ptr null\n", "@list = global ptr @it\n"));
}

TEST(Touched, IsNotWhatIsOnlyPassedOn) {
    EXPECT_FALSE(is_touched_by("ret ptr null\n"));
    EXPECT_FALSE(is_touched_by("%a = icmp eq ptr @it, %other\nret ptr null\n"));
    EXPECT_FALSE(is_touched_by("ret ptr @it\n")) << "nobody calls it";
    EXPECT_FALSE(is_touched_by("call void @passes(ptr @it)\nret ptr null\n",
                               "define internal void @passes(ptr %p) {\n%local = alloca ptr\nstore ptr %p, ptr "
                               "%local\n%a = load ptr, ptr %local\nret void\n}\n"));
}

TEST(Touched, IsWhatACalleeOrACallerTouches) {
    EXPECT_TRUE(is_touched_by("call void @reads(ptr @it)\nret ptr null\n",
                              "define internal void @reads(ptr %p) {\n%local = alloca ptr\nstore ptr %p, ptr "
                              "%local\n%a = load ptr, ptr %local\n%b = load i8, ptr %a\nret void\n}\n"));
    EXPECT_TRUE(is_touched_by(
        "ret ptr @it\n", "define void @calls() {\n%a = call ptr @uses(ptr null)\nstore i8 1, ptr %a\nret void\n}\n"));
}

}  // namespace
}  // namespace rove::bitcode
