#include "extraction/home/at_home.hpp"

#include "ir.hpp"

namespace rove::bitcode {
namespace {

// Which of `count` and `list` a program with this main() changes. `sent` is a function that it sends.
std::set<std::string> changed(const std::string& main, const std::string& more = "",
                              const std::string& elsewhere = "") {
    const std::string begin =
        "@count = global i32 5\n@list = global [4 x i32] zeroinitializer\n"
        "declare void @_Z5writePi(ptr)\ndeclare void @_Z4readPKi(ptr)\n"
        "define i32 @sent(i32 %n) {\nstore i32 %n, ptr @count\nret i32 %n\n}\n";
    ProgramOf program({begin + more + "define i32 @main() {\n" + main + "ret i32 0\n}\n", elsewhere});
    const auto is_sent = [](const llvm::Function& function) { return function.getName() == "sent"; };
    return *changed_at_home(program.modules(), {"count", "list"}, is_sent);
}
using Names = std::set<std::string>;

TEST(AtHome, WhatMainWritesHasChanged) {
    EXPECT_EQ(changed("store i32 7, ptr @count\n"), Names{"count"});
    EXPECT_EQ(changed("%a = getelementptr [4 x i32], ptr @list, i64 0, i64 2\nstore i32 7, ptr %a\n"), Names{"list"});
    EXPECT_EQ(changed("%a = atomicrmw add ptr @count, i32 1 seq_cst\n"), Names{"count"});
}

TEST(AtHome, WhatItOnlyReadsAndWhatOnlySentFunctionsWriteHasNot) {
    EXPECT_EQ(changed("%a = load i32, ptr @count\n"), Names{});
    EXPECT_EQ(changed("%a = call i32 @sent(i32 1)\n"), Names{});
    EXPECT_EQ(changed("", "define void @nobody_calls_it() {\nstore i32 7, ptr @count\nret void\n}\n"), Names{});
}

TEST(AtHome, CallsAreFollowed) {
    const std::string writes =
        "define void @writes(ptr %p) {\n%local = alloca ptr\nstore ptr %p, ptr %local\n"
        "%a = load ptr, ptr %local\nstore i32 7, ptr %a\nret void\n}\n";
    EXPECT_EQ(changed("call void @writes(ptr @count)\n", writes), Names{"count"});
    const std::string gives = "define ptr @gives() {\nret ptr @count\n}\n";
    EXPECT_EQ(changed("%a = call ptr @gives()\nstore i32 7, ptr %a\n", gives), Names{"count"});
    EXPECT_EQ(changed("%a = call ptr @gives()\n%b = load i32, ptr %a\n", gives), Names{});
}

TEST(AtHome, CodeThatIsNotSeenIsBelievedByItsTypes) {
    EXPECT_EQ(changed("call void @_Z5writePi(ptr @count)\n"), Names{"count"});
    EXPECT_EQ(changed("call void @_Z4readPKi(ptr @count)\n"), Names{});
}

TEST(AtHome, OtherFilesOfTheProgramAreItsCode) {
    EXPECT_EQ(changed("call void @other()\n", "declare void @other()\n",
                      "@count = external global i32\ndefine void @other() {\nstore i32 7, ptr @count\nret void\n}\n"),
              Names{"count"});
}

TEST(AtHome, WhatMakesAStaticIsNoChange) {
    const std::string made = "define internal void @makes() {\nstore i32 7, ptr @count\nret void\n}\n";
    const std::string list =
        "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @makes, "
        "ptr ";
    EXPECT_EQ(changed("", made + list + "@count }]\n"), Names{}) << "it runs where the static is";
    EXPECT_EQ(changed("", made + list + "null }]\n"), Names{"count"}) << "the program's own constructor";
}

TEST(AtHome, ThreadLocalVariablesAreEachThreadsOwn) {
    ProgramOf program(
        {"@count = thread_local global i32 5\ndefine i32 @main() {\nstore i32 7, ptr @count\nret i32 0\n}\n"});
    EXPECT_EQ(*changed_at_home(program.modules(), {"count"}, [](const auto&) { return false; }), Names{});
}

}  // namespace
}  // namespace rove::bitcode
