// The errors of rove build for sources of which it cannot make a package.
#include <algorithm>
#include <filesystem>

#include "workshop.hpp"

namespace rove::toolchain {
namespace {

using ToolchainTest = Workshop;

TEST_F(ToolchainTest, ASourceThatDoesNotCompileGivesTheCompilersOwnMessage) {
    const auto package = build_of("bad.c", "int f(void) { return nowhere; }\n");
    ASSERT_FALSE(package);
    EXPECT_EQ(package.error().code(), ErrorCode::failed);
    EXPECT_TRUE(mentions(package.error().message(), "use of undeclared identifier 'nowhere'"))
        << package.error().message();
    EXPECT_FALSE(std::filesystem::exists(folder() / "out.rove"));
}

TEST_F(ToolchainTest, ASourceWithoutEntryPointIsToldWhatToWrite) {
    const auto package = build_of("plain.c", "int f(void) { return 1; }\n");
    ASSERT_FALSE(package);
    EXPECT_EQ(package.error().code(), ErrorCode::invalid);
    EXPECT_TRUE(mentions(package.error().message(), "ROVE_ENTRY void NAME(rove_here *here"))
        << package.error().message();
}

// Natively it is a section as any other.
TEST_F(ToolchainTest, ASectionThatIsCalledAsOneThatIsRunIsNone) {
    for (const auto& [section, is_run] : {std::pair{".init.text", false}, {".init", true}, {".init_array.100", true}}) {
        const auto package =
            build_of("section.c", "__attribute__((section(\"" + std::string(section) +
                                      "\"), used)) static int f(int x) { return x + 1; }\n" +
                                      entry("go", "int two = f((int)size); rove_reply(here, &two, 4);"));
        EXPECT_EQ(package.has_value(), !is_run) << section;
    }
}

TEST_F(ToolchainTest, SourcesThatDoNotGoTogetherAreNamed) {
    write("both/a.c",
          "#include <rove/rove.h>\nint level = 1;\n"
          "ROVE_ENTRY void f(rove_here *h, const void *p, size_t n) {}\n");
    write("both/b.c", "int level = 2;\n");
    const auto package = build_of({.source = folder() / "both"});
    ASSERT_FALSE(package);
    EXPECT_TRUE(mentions(package.error().message(), "both/b.c does not link with those before it"))
        << package.error().message();
    EXPECT_TRUE(mentions(package.error().message(), "'level'")) << package.error().message();
}

TEST_F(ToolchainTest, ASymbolWhoseNameIsTooLongForAPackageIsNamed) {
    const std::string longest(1025, 'n');
    const auto package =
        build_of("uses.c", "#include <rove/rove.h>\nint " + longest + "(void);\n" +
                               entry("run", "int sum = " + longest + "(); rove_reply(here, &sum, 4);"));
    ASSERT_FALSE(package);
    EXPECT_EQ(package.error().code(), ErrorCode::unsupported);
    const std::string& why = package.error().message();
    EXPECT_NE(
        why.find("uses.c: one of its imports has a name of 1025 bytes, and a package's names have 1024 at most: nnnn"),
        std::string::npos)
        << why;
    EXPECT_LT(why.size(), 500U) << why;
}

// It would be called with other arguments than it takes.
TEST_F(ToolchainTest, AnEntryPointOfAnotherTypeIsRefused) {
    for (const char* entry :
         {"int f(rove_here *h, const void *p, size_t n) { return 1; }", "void f(const void *p, size_t n) {}",
          "void f(rove_here *h, size_t n, const void *p) {}", "void f(rove_here *h, const void *p, double n) {}",
          "void f(rove_here *h, const void *p, size_t n, int more) {}",
          "void f(rove_here *h, const void *p, size_t n, ...) {}"}) {
        const auto package = build_of("odd.c", std::string("#include <rove/rove.h>\nROVE_ENTRY ") + entry + "\n");
        ASSERT_FALSE(package) << entry;
        EXPECT_EQ(package.error().code(), ErrorCode::invalid);
        EXPECT_TRUE(mentions(package.error().message(),
                             "f: a ROVE_ENTRY function is called as void (rove_here *here, const void *payload, size_t "
                             "size)"))
            << package.error().message();
    }
}

TEST_F(ToolchainTest, ASourceIsNotOverwritten) {
    const std::string text = "#include <rove/rove.h>\nROVE_ENTRY void f(rove_here *h, const void *p, size_t n) {}\n";
    write("folder/one.c", text);
    for (const bool header : {false, true}) {
        toolchain::BuildOptions options{.source = folder() / "folder", .output = folder() / "folder" / "." / "one.c"};
        if (header) std::swap(options.header, options.output);
        if (header) options.output = folder() / "one.rove";
        const auto package = build_of(options);
        ASSERT_FALSE(package);
        EXPECT_TRUE(mentions(package.error().message(), "one.c is a source of the package, and would be overwritten"))
            << package.error().message();
    }
    EXPECT_EQ(as_text(*read_file(folder() / "folder" / "one.c")), text);
}

TEST_F(ToolchainTest, WithoutItsHeaderNoPackageIsWritten) {
    write("alone.c", "#include <rove/rove.h>\nROVE_ENTRY void f(rove_here *h, const void *p, size_t n) {}\n");
    const auto package = build_of({.source = folder() / "alone.c",
                                   .output = folder() / "alone.rove",
                                   .header = folder() / "missing" / "alone.h"});
    ASSERT_FALSE(package);
    EXPECT_TRUE(mentions(package.error().message(), "alone.h")) << package.error().message();
    EXPECT_FALSE(std::filesystem::exists(folder() / "alone.rove"));
}

TEST_F(ToolchainTest, SourcesThatAreLeftOutAreNamed) {
    write("some/run.c", "#include <rove/rove.h>\n" + entry("run", "rove_reply(here, payload, size);"));
    write("some/README", "");
    write("some/docs/page.md", "");
    const auto package = build_of({.source = folder() / "some"});
    ASSERT_TRUE(package) << package.error().message();
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
    write("some/help.C", "int help() { return 1; }\n");
    write("some/inner/more.cpp", "int more() { return 1; }\n");
    ASSERT_TRUE(build_of({.source = folder() / "some"}));
    ASSERT_EQ(warnings_.size(), 2U);
    for (const char* left_out : {"help.C is left out", "inner is left out"})
        EXPECT_TRUE(std::ranges::any_of(warnings_, [&](const auto& each) { return mentions(each, left_out); }))
            << left_out;
}

TEST_F(ToolchainTest, WhatIsNoSourceIsRefused) {
    write("empty/readme", "");
    for (const char* name : {"missing.c", "empty", "empty/readme"}) {
        const auto package = build_of({.source = folder() / name});
        ASSERT_FALSE(package) << name;
        EXPECT_EQ(package.error().code(), ErrorCode::invalid) << package.error().message();
    }
}

}  // namespace
}  // namespace rove::toolchain
