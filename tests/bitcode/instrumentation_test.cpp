// Functions to which options of the compiler add code: they are prepared, compiled and run without that code.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "bitcode/compiler.hpp"
#include "compiler_test.hpp"
#include "toolchain/files.hpp"
#include "toolchain/process.hpp"

namespace rove::bitcode {
namespace {

constexpr const char* kSource = R"(
#include <rove/rove.h>
struct Shape { virtual int area(int side) const; };
struct Square final : Shape { int area(int side) const override; };
int Shape::area(int side) const { return -side; }
int Square::area(int side) const { return side * side; }
static int thrice(int x) { return 3 * x; }
static int twice(int x) { return 2 * x; }
static int (*chosen[2])(int) = {twice, thrice};
__attribute__((noinline)) static void fill(volatile int* into, int with) { into[with & 7] = with; }
struct Counts {
    int* ends;
    ~Counts();
};
__attribute__((noinline)) Counts::~Counts() { ++*ends; }
extern "C" ROVE_ENTRY int measure(int n) {
    int ends = -1;
    { Counts counts{&ends}; }
    if (ends != 0) return -1;
    Square square;
    const Shape* volatile shape = &square;
    volatile int room[8] = {};
    fill(room, n);
    if (n < 0) return 0;
    return shape->area(n) + chosen[n & 1](n) + room[n & 7];
}
)";

struct Case {
    const char* name;
    std::vector<std::string> options;
    // What no node has, and what must not be asked of it. Empty: nothing in particular.
    std::vector<std::string> runtime;
};

void PrintTo(const Case& each, std::ostream* out) {
    *out << each.name;
}

class InstrumentationTest : public CompilerTest<testing::TestWithParam<Case>> {
protected:
    ByteBuffer bitcode_of(const std::string& text, const std::vector<std::string>& options) {
        const std::string source = (folder_.path() / "sample.cpp").string(), out = source + ".bc";
        EXPECT_TRUE(toolchain::write_file(source, as_bytes(text)));
        const char* tree = std::getenv("ROVE_SOURCE_DIR");
        std::vector<std::string> words{"clang++-19",
                                       "-target",
                                       "x86_64-linux-gnu",
                                       "-O1",
                                       "-Xclang",
                                       "-disable-llvm-passes",
                                       "-emit-llvm",
                                       "-c",
                                       "-fPIC",
                                       "-I" + std::string(tree != nullptr ? tree : ".") + "/include"};
        words.insert(words.end(), options.begin(), options.end());
        words.insert(words.end(), {source, "-o", out});
        const auto done = toolchain::run(words, "clang++-19");
        EXPECT_TRUE(done && done->status == 0) << (done ? done->out : done.error().message());
        auto bytes = toolchain::read_file(out);
        return bytes ? *bytes : ByteBuffer();
    }
    Result<int> run(const ByteBuffer& bitcode, int argument) {
        ROVE_TRY(const std::unique_ptr<CompiledModule> compiled,
                 compiler_->compile({.name = "sample", .bitcode = bitcode, .resolve = [](std::string_view name) {
                                         return dlsym(RTLD_DEFAULT, std::string(name).c_str());
                                     }}));
        compiled->run_constructors();
        auto* function = reinterpret_cast<int (*)(int)>(compiled->find("measure"));
        if (function == nullptr) return fail(ErrorCode::failed, "measure is not there");
        return function(argument);
    }
};

TEST_P(InstrumentationTest, IsLeftOut) {
    const auto prepared = compiler_->prepare({"x86_64-linux-gnu", {bitcode_of(kSource, GetParam().options)}});
    ASSERT_TRUE(prepared) << prepared.error().message();
    for (const std::string& name : GetParam().runtime)
        EXPECT_EQ(std::count(prepared->imports.begin(), prepared->imports.end(), name), 0) << name;
    const Result<int> measured = run(prepared->bitcode, 5);
    ASSERT_TRUE(measured) << measured.error().message();
    EXPECT_EQ(*measured, 25 + 15 + 5);
}

// A client that prepares nothing, or another version of Rove, sends it as its compiler made it.
TEST_P(InstrumentationTest, IsLeftOutWhereItArrives) {
    const Result<int> measured = run(bitcode_of(kSource, GetParam().options), 5);
    ASSERT_TRUE(measured) << measured.error().message();
    EXPECT_EQ(*measured, 25 + 15 + 5);
}

INSTANTIATE_TEST_SUITE_P(
    Options, InstrumentationTest,
    testing::Values(Case{"coverage", {"-fprofile-instr-generate", "-fcoverage-mapping"}, {"__llvm_profile_runtime"}},
                    Case{"mcdc", {"-fprofile-instr-generate", "-fcoverage-mapping", "-fcoverage-mcdc"}, {}},
                    Case{"values", {"-fprofile-instr-generate", "-mllvm", "-enable-value-profiling=true"}, {}},
                    Case{"cfi", {"-flto", "-fvisibility=hidden", "-fsanitize=cfi", "-fno-sanitize-ignorelist"}, {}},
                    Case{"kcfi", {"-fsanitize=kcfi"}, {}},
                    Case{"vtables", {"-flto", "-fvisibility=hidden", "-fwhole-program-vtables"}, {}},
                    Case{"checked_load",
                         {"-flto", "-fvisibility=hidden", "-fwhole-program-vtables", "-fvirtual-function-elimination"},
                         {}},
                    Case{"pg", {"-pg"}, {"mcount", "_mcount"}}, Case{"fentry", {"-pg", "-mfentry"}, {"__fentry__"}},
                    Case{"functions", {"-finstrument-functions"}, {"__cyg_profile_func_enter"}},
                    Case{"safe_stack", {"-fsanitize=safe-stack"}, {"__emutls_v.__safestack_unsafe_stack_ptr"}},
                    Case{"destroyed",
                         {"-fsanitize=memory", "-fsanitize-memory-use-after-dtor"},
                         {"__sanitizer_dtor_callback", "__sanitizer_dtor_callback_fields"}},
                    Case{"stack_protector", {"-fstack-protector-all"}, {"__stack_chk_guard", "__stack_chk_fail"}},
                    Case{"split_stack", {"-fsplit-stack"}, {"__morestack"}},
                    Case{"xray", {"-fxray-instrument", "-fxray-instruction-threshold=1"}, {}},
                    Case{"patchable", {"-fpatchable-function-entry=8,4"}, {}}),
    [](const auto& info) { return std::string(info.param.name); });

// A program under --coverage that has its counters written before it ends in another way than by exit().
TEST_F(InstrumentationTest, CountersAreNeitherWrittenNorReset) {
    const ByteBuffer bitcode = bitcode_of(
        "#include <rove/rove.h>\n"
        "extern \"C\" { void __gcov_dump(void); void __gcov_reset(void); int __llvm_profile_write_file(void); }\n"
        "extern \"C\" ROVE_ENTRY int measure(int n) {\n"
        "    __gcov_dump();\n"
        "    __gcov_reset();\n"
        "    return __llvm_profile_write_file() + n;\n"
        "}",
        {});
    const auto prepared = compiler_->prepare({"x86_64-linux-gnu", {bitcode}});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_TRUE(prepared->imports.empty()) << prepared->imports.front();
    const Result<int> measured = run(bitcode, 5);
    ASSERT_TRUE(measured) << measured.error().message();
    EXPECT_EQ(*measured, 5);
}

// A call that may throw is the end of its block where something has to be destroyed then.
TEST_F(InstrumentationTest, CountersAreNotWrittenWhereSomethingIsToBeDestroyed) {
    const ByteBuffer bitcode = bitcode_of(
        "#include <rove/rove.h>\n"
        "extern \"C\" { void __gcov_dump(void); int __llvm_profile_write_file(void); }\n"
        "struct Counted { int* n; ~Counted() { ++*n; } };\n"
        "extern \"C\" ROVE_ENTRY int measure(int n) {\n"
        "    int written = 0;\n"
        "    {\n"
        "        Counted counted{&n};\n"
        "        __gcov_dump();\n"
        "        written = __llvm_profile_write_file();\n"
        "    }\n"
        "    return written + n;\n"
        "}",
        {"-fexceptions"});
    const auto prepared = compiler_->prepare({"x86_64-linux-gnu", {bitcode}});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_EQ(std::ranges::count(prepared->imports, "__gcov_dump"), 0);
    EXPECT_EQ(std::ranges::count(prepared->imports, "__llvm_profile_write_file"), 0);
    const Result<int> measured = run(bitcode, 5);
    ASSERT_TRUE(measured) << measured.error().message();
    EXPECT_EQ(*measured, 6);
}

TEST_F(InstrumentationTest, AnotherCpusInstructionIsRefusedByTheFunctionsName) {
    const auto prepared = compiler_->prepare(
        {"x86_64-linux-gnu",
         {bitcode_of("#include <rove/rove.h>\n"
                     "extern \"C\" unsigned crc(unsigned, unsigned) __asm__(\"llvm.aarch64.crc32b\");\n"
                     "extern \"C\" ROVE_ENTRY int measure(int n) { return (int)crc(n, 1); }",
                     {})}});
    ASSERT_FALSE(prepared);
    EXPECT_EQ(prepared.error().code(), ErrorCode::unsupported);
    EXPECT_NE(prepared.error().message().find("measure cannot be compiled: it uses llvm.aarch64.crc32b"),
              std::string::npos)
        << prepared.error().message();
}

}  // namespace
}  // namespace rove::bitcode
