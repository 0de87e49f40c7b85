// The compiler alone: what it takes out of the bitcode that a program carries of itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bitcode/compiler.hpp"
#include "compiler_test.hpp"
#include "offload.hpp"

namespace rove::bitcode {
namespace {

using ExtractTest = CompilerTest<>;

TEST_F(ExtractTest, AFunctionThatTheCpuChoosesKeepsAtHomeWhoCallsIt) {
    const ByteBuffer bitcode = bitcode_of("chosen.cpp", std::string(kOffload) + R"(
__attribute__((target_clones("avx2", "default"))) int chosen(int n) { return n + 1; }
inline int kept;
static int calls(int n) { return chosen(n) + kept++; }
static int calls_not(int n) { return n + 2 + kept++; }
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<calls>::run, &rove::detail::Offload<calls_not>::run};
)");
    const auto all = compiler_->extract_all({.from = {"chosen", bitcode}});
    ASSERT_TRUE(all) << all.error().message();
    ASSERT_EQ(all->size(), 2U);
    for (const Extracted& each : *all) {
        const bool stays = each.facts.name.find("calls_not") == std::string::npos;
        EXPECT_EQ(each.facts.obstacle.find("chosen(int) is chosen by the CPU") != std::string::npos, stays)
            << each.facts.obstacle;
        EXPECT_EQ(each.facts.obstacle.empty(), !stays) << each.facts.obstacle;
    }
}

// An inline function of some 300 instructions that calls a small one. (clang writes down that a function throws nothing where it has seen all
// that it calls, which depends on the order in which it comes to them.)
constexpr const char* kLargeInline = R"(
inline int small(int n) noexcept { return n * FACTOR + 1; }
#define STEP n = small(n); v[n & 7] = v[n & 5] ^ n; n = small(n); v[n & 3] = v[n & 6] ^ n;
inline int large(volatile int* v, int n) noexcept { STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP return n; }
static int calls(int n) noexcept { int v[8] = {}; return large(v, n) - 1; }
)";
constexpr const char* kOneSent =
    "void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<calls>::run};";
constexpr const char* kTwoSent = R"(
static int also_calls(int n) { int v[8] = {}; return small(n) + large(v, n); }
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<also_calls>::run, &rove::detail::Offload<calls>::run};
)";

class SharedCodeTest : public ExtractTest {
protected:
    // By their names.
    std::map<std::string, Extracted> extracted(const std::string& sent, const std::string& factor = "3") {
        const ByteBuffer bitcode =
            bitcode_of("shared.cpp", "#define FACTOR " + factor + kOffload + kLargeInline + sent);
        auto all = compiler_->extract_all({.from = {"shared", bitcode}});
        EXPECT_TRUE(all) << all.error().message();
        std::map<std::string, Extracted> by_name;
        for (Extracted& each : *all) by_name.emplace(each.facts.name, std::move(each));
        return by_name;
    }
    Result<Prepared> prepare(const Extracted& function, SharedObjects* shared = nullptr) {
        return compiler_->prepare({.triple = "x86_64-linux-gnu",
                                   .modules = {function.bitcode},
                                   .interface = false,
                                   .entries = function.entries,
                                   .shared = shared});
    }
};

TEST_F(SharedCodeTest, IsOptimisedBeforeItIsCopied) {
    const auto one = extracted(kOneSent), two = extracted(kTwoSent);
    ASSERT_EQ(one.size(), 1U);
    ASSERT_EQ(two.size(), 2U);
    const Extracted& calls = one.begin()->second;
    const auto has = [](const ByteBuffer& bitcode, std::string_view name) {
        return as_text(bitcode).find(name) != std::string_view::npos;
    };
    EXPECT_TRUE(has(calls.bitcode, "_Z5largePVii"));
    EXPECT_FALSE(has(calls.bitcode, "_Z5smalli")) << "it is in the other already";
    ASSERT_TRUE(two.contains(calls.facts.name)) << calls.facts.name;
    EXPECT_EQ(calls.bitcode, two.at(calls.facts.name).bitcode) << "whatever else the program sends";
    const auto prepared = prepare(calls);
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_TRUE(has(prepared->bitcode, "_Z5largePVii")) << "the same function in each package";
    EXPECT_FALSE(has(prepared->bitcode, "rove.optimised"));
    EXPECT_TRUE(compiler_->compile(
        {.name = "calls", .bitcode = prepared->bitcode, .resolve = [](std::string_view) { return nullptr; }}));
}

// What several packages have in common is optimised before prepare() sees it.
TEST_F(SharedCodeTest, UnionsHaveZerosBeyondTheirFirstMember) {
    const auto all = extracted(R"(
inline const union { void* first; struct { int a, b, c; } other; } read = {nullptr};
inline int large_too(volatile int* v, int n) noexcept { return read.other.c != 0 ? n : large(v, n) + 7; }
static int begins(int n) { int v[8] = {}; return large_too(v, n) - large(v, n); }
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<begins>::run};
)");
    const auto prepared = prepare(all.begin()->second);
    ASSERT_TRUE(prepared) << prepared.error().message();
    const auto compiled = compiler_->compile(
        {.name = "begins", .bitcode = prepared->bitcode, .resolve = [](std::string_view) { return nullptr; }});
    ASSERT_TRUE(compiled) << compiled.error().message();
    using Run = void (*)(void*, int*, std::size_t);
    int result = 0;
    reinterpret_cast<Run>((*compiled)->find(prepared->entries.front()))(nullptr, &result, 3);
    EXPECT_EQ(result, 7);
}

TEST_F(SharedCodeTest, HasOneObjectFileForAllPackages) {
    SharedObjects shared;
    std::shared_ptr<const SharedObject> object;
    for (const auto& [name, function] : extracted(kTwoSent)) {
        const auto whole = prepare(function), apart = prepare(function, &shared);
        ASSERT_TRUE(whole && apart);
        EXPECT_TRUE(whole->shared.empty());
        ASSERT_EQ(apart->shared.size(), 1U) << name;
        EXPECT_LT(apart->object.size(), whole->object.size());
        EXPECT_EQ(apart->bitcode, whole->bitcode);
        EXPECT_EQ(apart->imports, whole->imports) << "not the function that is in an object of its own";
        if (object) EXPECT_EQ(apart->shared.front(), object);
        object = apart->shared.front();
    }
    EXPECT_EQ(shared.count(), 1U);
    const auto other = prepare(extracted(kOneSent, "5").begin()->second, &shared);
    ASSERT_TRUE(other && other->shared.size() == 1U);
    EXPECT_NE(other->shared.front(), object) << "of the same name, and other code";
}

TEST_F(SharedCodeTest, StaysWithAssemblyThatMayNameIt) {
    SharedObjects shared;
    for (const auto& [name, function] : extracted(R"(
static int hints(int n) { int v[8] = {}; asm("nop"); return large(v, n); }
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<hints>::run};
)")) {
        const auto whole = prepare(function), apart = prepare(function, &shared);
        ASSERT_TRUE(whole && apart) << name;
        EXPECT_TRUE(apart->shared.empty());
        EXPECT_EQ(apart->object, whole->object);
    }
}

// What is known from one time to the next.
class Remembered final : public KnownFacts {
public:
    [[nodiscard]] const Facts* find(const Digest& fingerprint) const override {
        const auto known = before_.find(fingerprint);
        return known != before_.end() ? &known->second : nullptr;
    }
    void keep(const Digest& fingerprint, const Facts& facts) override { now_[fingerprint] = facts; }
    [[nodiscard]] bool has_package(const Digest& bitcode) override { return !lost_.contains(bitcode); }
    [[nodiscard]] Bytes definitions(const Digest& module) const override {
        const auto known = definitions_before_.find(module);
        return known != definitions_before_.end() ? Bytes(known->second) : Bytes();
    }
    void keep_definitions(const Digest& module, ByteBuffer notes) override { definitions_[module] = std::move(notes); }
    [[nodiscard]] const std::map<Digest, ByteBuffer>& definitions_before() const { return definitions_before_; }
    void keep_before(const Digest& module, ByteBuffer notes) { definitions_before_[module] = std::move(notes); }
    void next() {
        before_ = std::exchange(now_, {});
        definitions_before_ = std::exchange(definitions_, {});
    }
    void lose(const Digest& bitcode) { lost_.insert(bitcode); }

private:
    std::map<Digest, Facts> before_, now_;
    std::map<Digest, ByteBuffer> definitions_before_, definitions_;
    std::set<Digest> lost_;
};

class ExtractedAgainTest : public ExtractTest {
protected:
    using ByName = std::map<std::string, Extracted>;  // of functions, joined where they travel together
    // Of a program that sends `changes` and `stays`.
    ByName extracted(const std::string& source, KnownFacts* known) {
        const ByteBuffer bitcode = bitcode_of("program.cpp", std::string(kOffload) + source + R"(
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<changes>::run, &rove::detail::Offload<stays>::run};
)");
        auto all = compiler_->extract_all({.from = {"program", bitcode}, .known = known});
        EXPECT_TRUE(all) << all.error().message();
        ByName by_name;
        for (Extracted& each : *all) by_name.emplace(each.facts.name, std::move(each));
        return by_name;
    }
    // Expects of what `before` is known of to be taken again where it changes, and to be what it is when nothing is known.
    void expect_change(const std::string& from, const std::string& to) {
        Remembered before;
        const std::string stays = "\nstatic int stays(int n) { return n + helper(n); }\n";
        (void)extracted("static int helper(int n);\n" + from + stays, &before);
        before.next();
        const ByName afresh = extracted("static int helper(int n);\n" + to + stays, nullptr);
        const ByName again = extracted("static int helper(int n);\n" + to + stays, &before);
        ASSERT_EQ(again.size(), 2U) << to;
        for (const auto& [name, each] : again) {
            EXPECT_EQ(each.facts.digest, afresh.at(name).facts.digest) << name << " of " << to;
            EXPECT_EQ(each.bitcode.empty(), name.find("stays") != std::string::npos) << name << " of " << to;
        }
    }
};

TEST_F(ExtractedAgainTest, OnlyWhatHasChangedIsTaken) {
    const std::string helper = "static int helper(int n) { return n * 3; }\n";
    const auto calls = [&](const std::string& more, const std::string& body) {
        return helper + more + "static int changes(int n) { " + body + " }";
    };
    const std::string plain = calls("", "return n;");
    expect_change(plain, calls("", "return n + 1;"));
    expect_change(plain, calls("inline int f(int n) { return n; }", "return f(n);"));
    expect_change(calls("inline int f(int n) { return n; }", "return f(n);"),
                  calls("inline int f(int n) { return n + 1; }", "return f(n);"));
    expect_change(calls("", "return \"one\"[n];"), calls("", "return \"two\"[n];"));
    expect_change(calls("static const int t[] = {1, 2};", "return t[n];"),
                  calls("static const int t[] = {1, 3};", "return t[n];"));
    expect_change(calls("", "static int count = 1; return count += n;"),
                  calls("", "static int count = 2; return count += n;"));
    expect_change(calls("", "return *(volatile int*)(long)n;"), calls("", "return *(int*)(long)n;"));
    expect_change(calls("", "return __atomic_load_n((int*)(long)n, 0);"),
                  calls("", "return __atomic_load_n((int*)(long)n, 5);"));
    expect_change(calls("int elsewhere(int);", "return elsewhere(n);"),
                  calls("int elsewhere(int) noexcept;", "return elsewhere(n);"));
    expect_change(calls("struct S { virtual int f() { return 1; } };", "S s; return s.f();"),
                  calls("struct S { virtual int f() { return 2; } };", "S s; return s.f();"));
    expect_change(calls("int made(int); template <int N> inline int v = made(N);", "return v<1>;"),
                  calls("int made(int); template <int N> inline int v = made(N + 1);", "return v<1>;"));
}

TEST_F(ExtractedAgainTest, WhatIsDeclaredAnewIsTaken) {
    const std::string helper = "static int helper(int n) { return n * 3; }\n";
    const auto reads = [&](const std::string& declared, const std::string& body = "return of_library[n];") {
        return helper + "extern \"C\" { " + declared + " }\nstatic int changes(int n) { " + body + " }";
    };
    expect_change(reads("extern const int of_library[];"), reads("extern int of_library[];"));
    expect_change(reads("extern int of_library[];"), reads("extern int of_library[] __attribute__((aligned(64)));"));
    expect_change(reads("int of_library(int);", "return of_library(n);"),
                  reads("int of_library(int) __attribute__((weak));", "return of_library(n);"));
}

// The optimiser makes exp2(x) of pow(2, x), and strlen(s) of strchr(s, 0) - s.
TEST_F(ExtractedAgainTest, WhatTheOptimiserMayCallIsTaken) {
    for (const std::string exp2 : {"extern \"C\" __attribute__((used)) double exp2(double n)",
                                   "static double own(double n) __asm__(\"exp2\");\n"
                                   "__attribute__((used)) static double own(double n)"}) {
        Remembered before;
        const std::string program = exp2 +
                                    " { return n + FACTOR; }\n"
                                    "static int changes(int n) { return (int)__builtin_pow(2.0, n); }\n"
                                    "static int stays(int n) { return -n; }";
        (void)extracted("\n#define FACTOR 1\n" + program, &before);
        before.next();
        const std::string changed = "\n#define FACTOR 2\n" + program;
        const ByName afresh = extracted(changed, nullptr), again = extracted(changed, &before);
        for (const auto& [name, each] : again) {
            EXPECT_EQ(each.facts.digest, afresh.at(name).facts.digest) << name << exp2;
            EXPECT_FALSE(each.bitcode.empty()) << name << exp2;
        }
    }
}

TEST_F(ExtractedAgainTest, WhatAnotherFunctionSaysChangesNoPackage) {
    const auto with = [](const std::string& text) {
        return "static int changes(int n) { return \"" + text +
               "\"[n]; }\nstatic int stays(int n) { return \"and so on\"[n]; }";
    };
    const ByName one = extracted(with("x"), nullptr),
                 other = extracted(with("y") + "const char* more() { return \"z\"; }", nullptr);
    for (const auto& [name, each] : one)
        EXPECT_EQ(each.facts.digest == other.at(name).facts.digest, name.find("stays") != std::string::npos) << name;
}

// The optimiser makes puts() of printf() where the file declares puts() as C's library has it, or not at all.
TEST_F(ExtractedAgainTest, AnotherDeclarationOfALibrarysFunctionIsSeen) {
    Remembered before;
    const std::string program =
        "extern \"C\" { int printf(const char*, ...); }\n"
        "static int changes(int n) { printf(\"hello\\n\"); return n; }\nstatic int stays(int n) { return n; }\n";
    (void)extracted(program, &before);
    before.next();
    const std::string changed = program + "extern \"C\" int puts[]; int* home() { return puts; }\n";
    const ByName afresh = extracted(changed, nullptr), again = extracted(changed, &before);
    for (const auto& [name, each] : again) EXPECT_EQ(each.facts.digest, afresh.at(name).facts.digest) << name;
}

// The compiler's copy of an inline function of C's library is no code of the program's: the library has it.
TEST_F(ExtractTest, CopiesOfALibrarysInlineFunctionsStay) {
    const ByteBuffer bitcode = bitcode_of("inline.cpp", std::string(kOffload) + R"(
extern "C" inline __attribute__((gnu_inline)) int atoi(const char* text) { return text[0] * 1234567; }
static int calls(int n) { return atoi((const char*)(long)n); }
void (*offload)(rove_here*, const void*, size_t) = &rove::detail::Offload<calls>::run;
)");
    const auto all = compiler_->extract_all({.from = {"inline", bitcode}});
    ASSERT_TRUE(all && all->size() == 1U);
    const auto prepared = compiler_->prepare({.triple = "x86_64-linux-gnu",
                                              .modules = {all->front().bitcode},
                                              .interface = false,
                                              .entries = all->front().entries});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_EQ(std::ranges::count(prepared->imports, "atoi"), 1);
}

// A context numbers those that several files have.
TEST_F(ExtractTest, TypesOfOtherFilesChangeNoPackage) {
    const auto with = [&](const std::string& other) {
        ByteBuffer program = bitcode_of(
            "other.cpp", std::string(kOffload) + other +
                             "void (*o)(rove_here*, const void*, size_t) = &rove::detail::Offload<other>::run;");
        const ByteBuffer own = bitcode_of("own.cpp", std::string(kOffload) + R"(
struct S { long a, b; };
static int own(int n) { S s[4] = {}; ((volatile S*)s)[n & 3].b = n; return s[n & 1].b; }
void (*offload)(rove_here*, const void*, size_t) = &rove::detail::Offload<own>::run;
)");
        program.insert(program.end(), own.begin(), own.end());
        auto all = compiler_->extract_all({.from = {"program", program}});
        EXPECT_TRUE(all) << all.error().message();
        for (const Extracted& each : *all)
            if (each.facts.name.find("own") != std::string::npos) return each.facts.digest;
        ADD_FAILURE() << "it is not there";
        return Digest();
    };
    EXPECT_EQ(with("static int other(int n) { return n; }\n"),
              with("struct S { int c; short d; }; static int other(int n) { S s[4] = {}; ((volatile S*)s)[n & 3].c = "
                   "n; return "
                   "s[n & 1].c; }\n"));
}

// Of a program of several files, of which one has changed, the others are known by their bitcode.
class FilesExtractedAgainTest : public ExtractTest {
protected:
    void SetUp() override {
        ExtractTest::SetUp();
        own_ = own("inline int shared(int n) { return n ^ 1; }");
    }
    using ByName = std::map<std::string, Extracted>;
    // Of a program of two files: the other one, and that which has the functions that it sends.
    ByName extracted(const std::string& other, KnownFacts* known) { return extracted(other, own_, known); }
    ByName extracted(const std::string& other, const ByteBuffer& own, KnownFacts* known) {
        ByteBuffer program = bitcode_of("other.cpp", other);
        program.insert(program.end(), own.begin(), own.end());
        auto all = compiler_->extract_all({.from = {"program", program}, .known = known});
        EXPECT_TRUE(all) << all.error().message();
        ByName by_name;
        for (Extracted& each : *all) by_name.emplace(each.facts.name, std::move(each));
        return by_name;
    }
    ByteBuffer own(const std::string& shared, const std::string& result = "elsewhere(n) + shared(n)") {
        return bitcode_of("own.cpp", std::string(kOffload) + shared + R"(
extern int elsewhere(int);
static int changes(int n) { return )" + result +
                                         R"(; }
static int stays(int n) { return "and so on"[n] + shared(n); }
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<changes>::run, &rove::detail::Offload<stays>::run};
)");
    }
    // In how many cases `stays` is taken again, where one byte of what was noted has changed. What is taken is always what it is.
    int taken_with_changed_notes(Remembered& before, const ByteBuffer& own) {
        const auto stays = [&](KnownFacts* known) {
            for (auto& [name, each] : extracted(kOther, own, known))
                if (name.find("stays") != std::string::npos) return each;
            ADD_FAILURE() << "it is not there";
            return Extracted();
        };
        const Digest digest = stays(nullptr).facts.digest;
        int taken = 0;
        for (const auto& [module, notes] : std::map(before.definitions_before()))
            for (std::size_t i = 0; i < notes.size(); i += 29) {
                ByteBuffer changed = notes;
                changed[i] ^= std::byte{1};
                before.keep_before(module, changed);
                const Extracted again = stays(&before);
                EXPECT_EQ(again.facts.digest, digest) << i;
                taken += again.bitcode.empty() ? 0 : 1;
                before.keep_before(module, notes);
            }
        return taken;
    }
    const std::string kOther = "int elsewhere(int n) { return n; }";
    ByteBuffer own_;
};

TEST_F(FilesExtractedAgainTest, WhatIsOfAnotherFileIsSeenToChange) {
    Remembered before;
    (void)extracted(kOther, &before);
    before.next();
    const std::string changed = "int more(int n) { return n; }\nint elsewhere(int n) { return n + 1; }";
    const ByName afresh = extracted(changed, nullptr), again = extracted(changed, &before);
    ASSERT_EQ(again.size(), 2U);
    for (const auto& [name, each] : again) {
        EXPECT_EQ(each.facts.digest, afresh.at(name).facts.digest) << name;
        EXPECT_EQ(each.bitcode.empty(), name.find("stays") != std::string::npos) << name;
    }
}

// What was noted is believed: with another byte in it, something is taken that has not changed.
TEST_F(FilesExtractedAgainTest, WhatHasNotChangedIsNotDigestedAgain) {
    Remembered before;
    (void)extracted(kOther, &before);
    before.next();
    EXPECT_GT(taken_with_changed_notes(before, own_), 0);
}

TEST_F(FilesExtractedAgainTest, OfAFileThatHasChangedOnlyThatFunctionIsDigestedAgain) {
    Remembered before;
    (void)extracted(kOther, &before);
    before.next();
    const ByteBuffer changed = own("inline int shared(int n) { return n ^ 1; }", "elsewhere(n) - shared(n)");
    const ByName afresh = extracted(kOther, changed, nullptr), again = extracted(kOther, changed, &before);
    for (const auto& [name, each] : again) {
        EXPECT_EQ(each.facts.digest, afresh.at(name).facts.digest) << name;
        EXPECT_EQ(each.bitcode.empty(), name.find("stays") != std::string::npos) << name;
    }
    EXPECT_GT(taken_with_changed_notes(before, changed), 0);
}

TEST_F(FilesExtractedAgainTest, NotesThatEndTooSoonAreAsIfThereWereNone) {
    Remembered before;
    (void)extracted(kOther, &before);
    before.next();
    for (const auto& [module, notes] : std::map(before.definitions_before())) {
        ASSERT_FALSE(notes.empty());
        for (std::size_t size = 0; size < notes.size(); size += 29) {
            before.keep_before(module, ByteBuffer(notes.begin(), notes.begin() + static_cast<std::ptrdiff_t>(size)));
            for (const auto& [name, each] : extracted(kOther, &before))
                EXPECT_TRUE(each.bitcode.empty()) << name << size;
        }
    }
}

// What the code that makes an inline variable calls is optimised with the rest, also where no other function calls it.
TEST_F(ExtractTest, WhatMakesAVariableIsTheSameWhateverElseIsSent) {
    const auto own_with = [&](const std::string& other) {
        const ByteBuffer program = bitcode_of("made.cpp", std::string(kOffload) + R"(
extern "C" int of_library();
inline int step(int n) { return n * 3 + 1; }
inline int made(int n) { int sum = 0; for (int i = 0; i < n; ++i) sum += step(i); return sum; }
inline int variable = made(of_library());
static int own(int n) { return variable += n; }
static int other(int n) { return )" + other + R"(; }
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<own>::run, &rove::detail::Offload<other>::run};
)");
        auto all = compiler_->extract_all({.from = {"program", program}});
        EXPECT_TRUE(all) << all.error().message();
        for (const Extracted& each : *all)
            if (each.facts.name.find("own") != std::string::npos) return each.facts.digest;
        ADD_FAILURE() << "it is not there";
        return Digest();
    };
    EXPECT_EQ(own_with("n"), own_with("made(n)"));
}

// clang's own tests whether an object is of a final class by its vtable's address. CompilerTest compiles without the option for that.
TEST_F(ExtractTest, AClassThatIsKnownByItsVtablesAddressStaysAtHome) {
    const ByteBuffer bitcode = bitcode_of("final.cpp", std::string(kOffload) + R"(
struct Shape { virtual ~Shape() {} virtual int area() { return 1; } };
struct Square final : Shape { int side = 5; };
struct Round : Shape { int side = 6; };
static int finds(int n) { Square* found = dynamic_cast<Square*>((Shape*)(long)n); return found ? found->side : 0; }
static int finds_any(int n) { Round* found = dynamic_cast<Round*>((Shape*)(long)n); return found ? found->side : 0; }
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<finds>::run, &rove::detail::Offload<finds_any>::run};
)");
    const auto all = compiler_->extract_all({.from = {"final", bitcode}});
    ASSERT_TRUE(all) << all.error().message();
    ASSERT_EQ(all->size(), 2U);
    for (const Extracted& each : *all)
        EXPECT_EQ(each.facts.obstacle.find("-fno-assume-unique-vtables") != std::string::npos,
                  each.facts.name.find("finds_any") == std::string::npos)
            << each.facts.name << ": " << each.facts.obstacle;
}

TEST_F(ExtractTest, ATemporaryThatAStaticRefersToGoesAlong) {
    const ByteBuffer bitcode = bitcode_of("temporary.cpp", std::string(kOffload) + R"(
static int counts(int n) { static int&& sum = 5; return sum += n; }
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<counts>::run};
)");
    const auto all = compiler_->extract_all({.from = {"temporary", bitcode}});
    ASSERT_TRUE(all) << all.error().message();
    ASSERT_EQ(all->size(), 1U);
    EXPECT_EQ(all->front().facts.obstacle, "");
}

// Only the program's file knows that an object without bitcode has the definition that counts.
TEST_F(ExtractTest, AWeakDefinitionThatWasReplacedStaysAtHome) {
    const ByteBuffer bitcode = bitcode_of("weak.cpp", std::string(kOffload) + R"(
extern "C" __attribute__((weak)) int hook(int n) { return n + 1; }
extern "C" __attribute__((weak)) int level = 1;
static int calls(int n) { return hook(n) + level; }
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<calls>::run};
)");
    const auto extract = [&](const std::set<std::string, std::less<>>& strong, KnownFacts* known) {
        auto all = compiler_->extract_all({.from = {"weak", bitcode},
                                           .is_strong = [&](std::string_view name) { return strong.contains(name); },
                                           .known = known});
        EXPECT_TRUE(all) << all.error().message();
        return std::move(all->front());
    };
    Remembered before;
    EXPECT_NE(extract({}, &before).facts.obstacle, "") << "the variable is the program's own";
    before.next();
    const Extracted replaced = extract({"hook", "level"}, &before);
    EXPECT_EQ(replaced.facts.obstacle, "") << "nothing was known of it";
    const auto prepared = compiler_->prepare(
        {.triple = "x86_64-linux-gnu", .modules = {replaced.bitcode}, .interface = false, .entries = replaced.entries});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_EQ(prepared->imports, (std::vector<std::string>{"hook", "level"}));
}

constexpr const char* kMatchers = R"(
namespace std { namespace __detail {
template <int N> struct _AnyMatcher { int& nothing() const { static int nul = N; return nul; } };
} template <typename T> struct hash { int& calls() const { static int calls; return calls; } }; }
static int first(int n) { return std::__detail::_AnyMatcher<1>().nothing() += n; }
static int second(int n) { return std::__detail::_AnyMatcher<1>().nothing() -= n; }
struct Mine {};
static int third(int n) { return std::hash<Mine>().calls() += n; }
static int fourth(int n) { return std::hash<Mine>().calls() -= n; }
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<first>::run, &rove::detail::Offload<second>::run,
                                                       &rove::detail::Offload<third>::run, &rove::detail::Offload<fourth>::run};
)";

// std::regex has such: a hundred functions that use it would be one package.
TEST_F(ExtractTest, TablesOfALibrarysOwnJoinNobody) {
    const ByteBuffer bitcode = bitcode_of("matchers.cpp", std::string(kOffload) + kMatchers);
    const auto all = compiler_->extract_all({.from = {"matchers", bitcode}});
    ASSERT_TRUE(all) << all.error().message();
    ASSERT_EQ(all->size(), 3U);
    for (const Extracted& each : *all)
        EXPECT_EQ(each.entries.size(), each.facts.name.find("third") != std::string::npos ? 2U : 1U) << each.facts.name;
}

TEST_F(ExtractedAgainTest, WithoutItsPackageItIsTaken) {
    Remembered before;
    const std::string program = "static int changes(int n) { return n; }\nstatic int stays(int n) { return -n; }";
    const ByName first = extracted(program, &before);
    before.next();
    before.lose(first.begin()->second.facts.digest);
    const ByName again = extracted(program, &before);
    EXPECT_EQ(again.begin()->second.bitcode, first.begin()->second.bitcode);
    EXPECT_TRUE(again.rbegin()->second.bitcode.empty());
    EXPECT_EQ(again.rbegin()->second.facts.digest, first.rbegin()->second.facts.digest);
}

TEST_F(ExtractedAgainTest, WhatTravelsTogetherStillDoes) {
    Remembered before;
    const std::string program =
        "inline int count = 1;\nstatic int changes(int n) { return count += n; }\nstatic int stays(int n) { return "
        "count -= n; }";
    const ByName first = extracted(program, &before);
    before.next();
    const ByName again = extracted(program + "\nint home() { return ++count; }", &before);
    ASSERT_EQ(first.size(), 1U);
    ASSERT_EQ(again.size(), 1U);
    const Extracted &one = first.begin()->second, &other = again.begin()->second;
    EXPECT_EQ(other.keys, one.keys);
    EXPECT_EQ(other.facts.digest, one.facts.digest);
    EXPECT_TRUE(other.bitcode.empty());
    EXPECT_EQ(other.changed_at_home, std::vector<std::string>{"count"})
        << "what the program does with it is looked for each time";
    EXPECT_TRUE(one.changed_at_home.empty());
}

TEST_F(ExtractedAgainTest, WhyItCannotTravelIsKnown) {
    Remembered before;
    const std::string program =
        "int of_program = 1;\nstatic int changes(int n) { return of_program += n; }\nstatic int stays(int n) { return "
        "-n; }";
    const ByName first = extracted(program, &before);
    before.next();
    const ByName again = extracted(program, &before);
    for (const auto& [name, each] : first) EXPECT_EQ(each.facts.obstacle, again.at(name).facts.obstacle) << name;
    EXPECT_NE(first.begin()->second.facts.obstacle.find("of_program"), std::string::npos)
        << first.begin()->second.facts.obstacle;
}

TEST_F(ExtractedAgainTest, AddressesOfLabelsAreTakenEachTime) {
    Remembered before;
    const std::string program =
        "static int changes(int n) { static void* const at[] = {&&one, &&two}; goto *at[n & 1]; one: return 1; two: "
        "return 2; }\n"
        "static int stays(int n) { return -n; }";
    (void)extracted(program, &before);
    before.next();
    for (const auto& [name, each] : extracted(program, &before))
        EXPECT_EQ(each.bitcode.empty(), name.find("stays") != std::string::npos) << name;
}

}  // namespace
}  // namespace rove::bitcode
