// generate(), which the process that compiles calls for a peer's bitcode, within this process.
#include "jit/process/generate.hpp"

#include <algorithm>

#include "ir.hpp"

namespace rove::bitcode {
namespace {

Result<Generated> generated(const std::string& text) {
    const ByteBuffer bitcode = section_of({text});
    return generate({.name = "built", .bitcode = bitcode, .in_image = {}});
}

std::string listing(std::size_t constructors) {
    std::string list = "define internal void @begin() {\nret void\n}\n@llvm.global_ctors = appending global [" +
                       std::to_string(constructors) + " x { i32, ptr, ptr }] [";
    for (std::size_t i = 0; i < constructors; ++i)
        list += std::string(i > 0 ? ", " : "") + "{ i32, ptr, ptr } { i32 65535, ptr @begin, ptr null }";
    return list + "]\n";
}

TEST(Generate, ConstructorsAreNamedInTheOrderInWhichTheyRun) {
    const auto made = generated(
        "define internal void @last() {\nret void\n}\ndefine internal void @first() {\nret void\n}\n"
        "define hidden void @hidden() {\nret void\n}\n@kept = global ptr @hidden\n"
        "@llvm.global_ctors = appending global [3 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @last, ptr "
        "null }, "
        "{ i32, ptr, ptr } { i32 200, ptr @hidden, ptr null }, { i32, ptr, ptr } { i32 101, ptr @first, ptr null }]\n");
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_EQ(made->constructors,
              (std::vector<std::string>{"rove.constructor.00002", "rove.constructor.00001", "rove.constructor.00000"}));
    for (const std::string& each : made->constructors)
        EXPECT_NE(std::ranges::find(made->names, each), made->names.end()) << each << " is not found by its name";
}

// The process that links the code keeps a name for each.
TEST(Generate, ConstructorsAreBounded) {
    EXPECT_TRUE(generated(listing(1000)));
    const auto refused = generated(listing(kNamesMax + 1));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
    EXPECT_NE(refused.error().message().find("65537 names"), std::string::npos) << refused.error().message();
}

}  // namespace
}  // namespace rove::bitcode
