// The compiler alone: what prepare() makes of bitcode, and that compile() runs it here. rove build and the node have
// their own tests; these say which side of the LLVM library broke.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "bitcode/compiler.hpp"
#include "compiler_test.hpp"
#include "offload.hpp"
#include "toolchain/files.hpp"
#include "toolchain/process.hpp"
#include "wire/image.hpp"

namespace rove::bitcode {
namespace {

extern "C" void __cxa_finalize(void* handle);

int handle_of_destructors = 0;

void* find_here(std::string_view name) {
    if (name == wire::kDsoHandle) return &handle_of_destructors;
    return dlsym(RTLD_DEFAULT, std::string(name).c_str());
}

class PrepareTest : public CompilerTest<> {
protected:
    // Destructors of statics run while their code is still there.
    void TearDown() override {
        __cxa_finalize(&handle_of_destructors);
        loaded_.clear();
    }

    Result<Prepared> prepare(std::vector<ByteBuffer> modules, bool interface = false,
                             const std::string& triple = "x86_64-linux-gnu") {
        return compiler_->prepare({triple, std::move(modules), interface});
    }
    Result<std::unique_ptr<CompiledModule>> compile(const ByteBuffer& bitcode, const NamesInImage& in_image = {}) {
        CompileRequest request;
        request.name = "sample";
        request.bitcode = bitcode;
        request.resolve = find_here;
        request.in_image = in_image;
        return compiler_->compile(request);
    }
    // Prepared, compiled and constructed; null after a failed expectation.
    CompiledModule* load(const std::string& name, const std::string& text) {
        auto prepared = prepare({bitcode_of(name, text)});
        EXPECT_TRUE(prepared) << prepared.error().message();
        if (!prepared) return nullptr;
        auto compiled = compile(prepared->bitcode);
        EXPECT_TRUE(compiled) << compiled.error().message();
        if (!compiled) return nullptr;
        (*compiled)->run_constructors();
        return loaded_.emplace_back(std::move(*compiled)).get();
    }
    static int call(const CompiledModule& module, std::string_view name, int argument) {
        auto* function = reinterpret_cast<int (*)(int)>(module.find(name));
        EXPECT_NE(function, nullptr) << name;
        return function != nullptr ? function(argument) : -1;
    }
    std::vector<std::unique_ptr<CompiledModule>> loaded_;
};

constexpr const char* kCounter = R"(
static int count;
static int seen[8];
ROVE_ENTRY int add(int n) { seen[n & 7]++; return count += n; }
ROVE_ENTRY int times(int n) { return seen[n & 7]; }
)";

// A label of a function whose code is the image's is nothing in code that is compiled here.
// As a package of another toolchain may have it.
TEST_F(PrepareTest, WhatCannotBeLinkedSaysWhy) {
    const auto compiled = compile(bitcode_of(
        "wide.c", "static int wide __attribute__((aligned(8192), used)) = 1; int go(void) { return wide; }"));
    ASSERT_FALSE(compiled);
    EXPECT_NE(compiled.error().message().find("lignment"), std::string::npos) << compiled.error().message();
    EXPECT_TRUE(compile(bitcode_of("fine.c", "int go(void) { return 1; }"))) << "and holds up nothing after it";
}

TEST_F(PrepareTest, LabelsOfAnImageAreHeldByItsOwnCodeOnly) {
    const auto prepared = prepare({bitcode_of("labels.c", R"(
static short distances[2];
static int run(const short *at) {
    static void *const labels[] = {&&one, &&two};
    if (at == 0) {
        for (int i = 0; i < 2; ++i) distances[i] = (short)((char *)labels[i] - (char *)&&one);
        return 0;
    }
one: if (*at == 0) return 1; goto *((char *)&&one + *at++);
two: if (*at == 0) return 2; goto *((char *)&&one + *at++);
}
ROVE_ENTRY int number(int n) {
    short program[4] = {};
    run(0);
    program[0] = distances[n & 1];
    return run(program);
}
)")});
    ASSERT_TRUE(prepared) << prepared.error().message();
    int there = 0;
    const auto image_has = [&there](const std::set<std::string>& names) {
        NamesInImage all;
        for (const std::string& name : names) all[name] = &there;
        return all;
    };
    const auto refused = compile(prepared->bitcode, image_has({"rove.anchor.0"}));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message().find("labels whose addresses 'number' holds"), std::string::npos)
        << refused.error().message();
    const auto borrowed = compile(prepared->bitcode, image_has({"rove.anchor.0", "rove.static.0", "number"}));
    ASSERT_TRUE(borrowed) << borrowed.error().message();
    EXPECT_EQ((*borrowed)->find("number"), nullptr) << "it has code of its own";
}

TEST_F(PrepareTest, AModuleKeepsItsEntriesInSourceOrderAndNumbersItsStatics) {
    const auto prepared = prepare(
        {bitcode_of("count.c", kCounter), bitcode_of("more.c", "ROVE_ENTRY int first_of_second(int n) { return n; }")});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_EQ(prepared->entries, (std::vector<std::string>{"add", "times", "first_of_second"}));
    EXPECT_EQ(prepared->statics, 2u);
    EXPECT_TRUE(prepared->imports.empty());
    EXPECT_TRUE(prepared->image_obstacle.empty());
    EXPECT_FALSE(prepared->pinned);
}

TEST_F(PrepareTest, CodeCountsInItsOwnStaticsOrInThoseItIsGiven) {
    const auto prepared = prepare({bitcode_of("count.c", kCounter)});
    ASSERT_TRUE(prepared) << prepared.error().message();
    const auto own = compile(prepared->bitcode);
    ASSERT_TRUE(own) << own.error().message();
    EXPECT_EQ(call(**own, "add", 5), 5);
    EXPECT_EQ(call(**own, "add", 5), 10);
    EXPECT_EQ(call(**own, "times", 5), 2);
    EXPECT_EQ((*own)->find("no such name"), nullptr);
    EXPECT_GT((*own)->code_bytes(), 0u);

    std::array<std::array<int, 8>, 2> shared{};
    const NamesInImage lent{{"rove.static.0", shared[0].data()}, {"rove.static.1", shared[1].data()}};
    EXPECT_TRUE((*own)->has_own_statics());
    for (int round = 1; round <= 2; ++round) {  // the second compile goes on where the first stopped
        const auto borrowed = compile(prepared->bitcode, lent);
        ASSERT_TRUE(borrowed) << borrowed.error().message();
        EXPECT_FALSE((*borrowed)->has_own_statics());
        EXPECT_EQ(call(**borrowed, "add", 3), 3 * round);
    }
    EXPECT_EQ(call(**own, "add", 1), 11);
}

TEST_F(PrepareTest, AnInterfaceExportsWhatItDefines) {
    const auto prepared = prepare(
        {bitcode_of("shelf.c", "int level = 3; static int hidden; int put(int n) { return level += n + hidden++; }")},
        true);
    ASSERT_TRUE(prepared) << prepared.error().message();
    auto exports = prepared->exports;
    std::sort(exports.begin(), exports.end());
    EXPECT_EQ(exports, (std::vector<std::string>{"level", "put"}));
    EXPECT_EQ(prepared->statics, 1u);
    const auto compiled = compile(prepared->bitcode);
    ASSERT_TRUE(compiled) << compiled.error().message();
    EXPECT_EQ(call(**compiled, "put", 4), 7);
    EXPECT_EQ(*static_cast<int*>((*compiled)->find("level")), 7);
}

TEST_F(PrepareTest, ExceptionsAreThrownAndCaughtInside) {
    auto* const module = load("throws.cpp", R"(
#include <stdexcept>
#include <string>
__attribute__((noinline)) static int half(int n) { if (n % 2) throw std::invalid_argument("odd: " + std::to_string(n)); return n / 2; }
ROVE_ENTRY int safe_half(int n) { try { return half(n); } catch (const std::exception& e) { return -static_cast<int>(std::string(e.what()).size()); } }
)");
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(call(*module, "safe_half", 8), 4);
    EXPECT_EQ(call(*module, "safe_half", 7), -6);
}

TEST_F(PrepareTest, ConstructorsRunOnceInOrderOfPriority) {
    auto* const module = load("made.cpp", R"(
#include <string>
#include <vector>
static int trail = 0;
__attribute__((constructor(300))) static void second() { trail = trail * 10 + 2; }
__attribute__((constructor(200))) static void first() { trail = trail * 10 + 1; }
static std::vector<std::string> words{"one", "two", "a word that is too long for the small buffer"};
ROVE_ENTRY int order(int) { return trail; }
ROVE_ENTRY int length(int n) { return static_cast<int>(words[n].size()); }
)");
    ASSERT_NE(module, nullptr);
    module->run_constructors();  // nothing is left to run
    EXPECT_EQ(call(*module, "order", 0), 12);
    EXPECT_EQ(call(*module, "length", 2), 44);
}

TEST_F(PrepareTest, ThreadLocalsAreEachThreadsOwn) {
    const auto prepared = prepare(
        {bitcode_of("thread.c", "static __thread int mine = 40; ROVE_ENTRY int bump(int n) { return mine += n; }")});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_TRUE(prepared->pinned);
    EXPECT_EQ(prepared->image_obstacle, "");
    EXPECT_EQ(prepared->statics, 1U) << "its control object, which image and bitcode share";
    const auto compiled = compile(prepared->bitcode);
    ASSERT_TRUE(compiled) << compiled.error().message();
    EXPECT_EQ(call(**compiled, "bump", 1), 41);
    EXPECT_EQ(call(**compiled, "bump", 1), 42);
    int other = 0;
    std::thread([&] { other = call(**compiled, "bump", 1); }).join();
    EXPECT_EQ(other, 41);
}

// Addresses of parts, chosen between two variables, and in a function that is entered by another way than it uses the variable on.
TEST_F(PrepareTest, ThreadLocalsAreReachedHoweverTheyAreUsed) {
    auto* const module = load("uses.c", R"(
static int of_all = 5;
static __thread struct { char first; int table[4]; int *to; } own = {1, {10, 20, 30, 40}, &of_all};
static __thread int zero, one = 1;
static __thread _Alignas(64) char wide[64] = "wide";
__attribute__((noinline)) static int *choose(int n) { return n & 1 ? &one : n & 2 ? &zero : &own.table[2]; }
ROVE_ENTRY int part(int n) { return own.table[n & 3] + *own.to; }
ROVE_ENTRY int chosen(int n) { return ++*choose(n); }
ROVE_ENTRY int aligned(int n) { return (int)((unsigned long)wide % 64) + wide[n]; }
)");
    ASSERT_NE(module, nullptr);
    for (int thread = 0; thread < 2; ++thread)
        std::thread([&] {
            EXPECT_EQ(call(*module, "part", 3), 45);
            EXPECT_EQ(call(*module, "chosen", 0), 31);
            EXPECT_EQ(call(*module, "chosen", 1), 2);
            EXPECT_EQ(call(*module, "chosen", 2), 1);
            EXPECT_EQ(call(*module, "part", 2), 36);
            EXPECT_EQ(call(*module, "aligned", 1), 'i');
        }).join();
}

TEST_F(PrepareTest, AThreadLocalOfAnotherLibraryIsAskedForAsACompilerWouldName) {
    const auto prepared = prepare(
        {bitcode_of("far.c", "extern __thread int far_off; ROVE_ENTRY int get(int n) { return far_off + n; }")});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_EQ(prepared->imports, (std::vector<std::string>{"__emutls_get_address", "__emutls_v.far_off"}));
    EXPECT_EQ(prepared->image_obstacle, "");
    EXPECT_TRUE(prepared->pinned);
}

TEST_F(PrepareTest, WhatKeepsAnAddressIsPinned) {
    const std::string kNames =
        "#include <stddef.h>\n#include <string.h>\nstatic const char *const names[] = {\"one\", "
        "\"two\", \"three\", \"four\"};\n";
    // ends(n): the place of a library, where strtol() has put an address within a text.
    const std::string kRest =
        "#include <stddef.h>\n#include <stdlib.h>\n#include <string.h>\nchar **place(void);\nstatic char **ends(int n) "
        "{ "
        "strtol(\"12 rest\", place(), n); return place(); }\n";
    const std::map<std::string, std::string> pinned = {
        {"function.c",
         "static int f(int n) { return n; } static int g(int n) { return n * n; } static int (*kept)(int); ROVE_ENTRY "
         "int e(int n) { if (n) kept = n > 5 ? f : g; return kept ? kept(n) : 0; }"},
        {"text.c",
         "static const char* kept; ROVE_ENTRY int e(int n) { if (n) kept = \"text\"; return kept ? kept[n] : 0; }"},
        {"label.c",
         "static void *kept; ROVE_ENTRY int e(int n) { if (!kept) kept = n > 5 ? &&a : &&b; goto *kept; a: return 1; "
         "b: "
         "return 2; }"},
        {"environment.c", "#include <stdlib.h>\nROVE_ENTRY int e(int n) { return n + putenv(\"ROVE_SAMPLE=1\"); }"},
        {"log.c", "#include <syslog.h>\nROVE_ENTRY int e(int n) { openlog(\"sample\", 0, LOG_USER); return n; }"},
        {"destructor.cpp",
         "#include <string>\nstatic std::string s(100, 'x'); ROVE_ENTRY int e(int n) { return s[n]; }"},
        {"listed.c", kNames + "#include <stdlib.h>\nROVE_ENTRY int e(int n) { return putenv((char *)names[n & 3]); }"},
        {"of_thread.c", "#include <pthread.h>\nROVE_ENTRY int e(int n) { return pthread_setspecific(n, \"text\"); }"},
        // Addresses that a library function has made of a constant's, so that only what is written into the static tells. Without the
        // compiler's own memcpy.
        {"fortified.c",
         kRest +
             "static char kept[64]; void *__memcpy_chk(void *, const void *, size_t, size_t); ROVE_ENTRY int put(int "
             "n) { __memcpy_chk(kept, ends(n), n & 15, 64); return n; } ROVE_ENTRY int get(int n) { const char *s; "
             "memcpy(&s, kept, 8); return s[n]; }"},
        {"found.c", kRest + "static char kept[64]; ROVE_ENTRY int put(int n) { char *at = strchr(kept, ':') + 1; "
                            "memcpy(at, ends(n), 8); return n; } ROVE_ENTRY int get(int n) { const char *s; memcpy(&s, "
                            "kept + n, 8); return s[0]; }"},
        {"back.c", kRest +
                       "static size_t kept; ROVE_ENTRY int put(int n) { char at[8]; char *volatile end = at + (n & 7); "
                       "kept = (size_t)*ends(n) - ((size_t)end - (size_t)at); return n; } ROVE_ENTRY int get(int n) { "
                       "return ((const char *)kept)[n]; }"},
        // In places that have no pointer's type.
        {"bytes.c", kRest +
                        "static _Alignas(8) char kept[8]; ROVE_ENTRY int put(int n) { memcpy(kept, ends(n), 8); "
                        "return n; } ROVE_ENTRY int get(int n) { const char *s; memcpy(&s, kept, 8); return s[n]; }"},
        {"number.c", kRest + "static size_t kept; ROVE_ENTRY int put(int n) { kept = (size_t)*ends(n); return n; }"
                             "ROVE_ENTRY int get(int n) { return ((const char *)kept)[n]; }"},
        {"copied.c",
         kRest + "static struct { char bytes[40]; } kept; ROVE_ENTRY int put(int n) { memcpy(kept.bytes + 3, ends(n), "
                 "32); return n; } ROVE_ENTRY int get(int n) { const char *s; memcpy(&s, kept.bytes + 3 + 8 * (n & 3), "
                 "8); return s[0]; }"},
        {"swapped.c",
         kRest + "static _Atomic size_t kept; ROVE_ENTRY int put(int n) { return (int)__c11_atomic_exchange("
                 "&kept, (size_t)*ends(n), 5); } ROVE_ENTRY int get(int n) { return ((const char *)kept)[n]; }"},
        {"called.c",
         kRest + "static size_t kept[2]; __attribute__((noinline)) static void keep(size_t *at, size_t n) { *at = n; }"
                 "ROVE_ENTRY int put(int n) { keep(&kept[n & 1], (size_t)*ends(n)); return n; } ROVE_ENTRY int "
                 "get(int n) { keep(&kept[1], 5); return ((const char *)kept[n & 1])[n]; }"},
        {"given.c",
         kRest + "static size_t kept; __attribute__((noinline)) static size_t pick(int n) { return (size_t)*ends(n) "
                 "+ 1; } ROVE_ENTRY int put(int n) { kept = pick(n); return n; } ROVE_ENTRY int get(int n) { return "
                 "((const char *)kept)[n]; }"},
        {"packed.c",
         kRest + "static size_t kept; ROVE_ENTRY int put(int n) { size_t at = 0; for (int i = 0; i < n; ++i) at += "
                 "(size_t)*ends(i); kept = at; return n; } ROVE_ENTRY int get(int n) { return ((const char "
                 "*)kept)[n]; }"}};
    for (const auto& [name, text] : pinned) {
        const auto prepared = prepare({bitcode_of(name, text)});
        ASSERT_TRUE(prepared) << prepared.error().message();
        EXPECT_TRUE(prepared->pinned) << name;
    }
    // What is read while the call lasts, or jumped to, is not kept.
    const std::map<std::string, std::string> free = {
        {"read.c",
         "#include <string.h>\nROVE_ENTRY int e(int n) { char *volatile "
         "at = (char *)&n; return strcmp(at, \"text\"); }"},
        {"jump.c",
         "ROVE_ENTRY int e(int n) { static void *const to[] = {&&a, &&b}; "
         "goto *to[n & 1]; a: return 1; b: return 2; }"},
        // Texts that are read, beside numbers that are counted.
        {"count.c",
         kNames + "static long calls, sum[4], last; static double mean; __attribute__((noinline)) static void add(long "
                  "*to, long n) { *to += n; } ROVE_ENTRY int e(int n) { ++calls; add(&sum[n & 3], n); last = "
                  "(long)strlen(names[n & 3]); mean = (mean + n) / 2; return (int)(calls + sum[0] + last + mean); }"},
        {"rows.cpp",
         "#include <vector>\nstatic unsigned long rows, sum; static long at; ROVE_ENTRY int e(int n) { "
         "std::vector<int> v(n); rows += v.size(); for (int each : v) sum += each; at += &v.at(n / 2) - v.data(); "
         "return (int)(rows + sum); }"},
        {"sum.c", kNames + "static size_t total; ROVE_ENTRY void e(void *here, const void *p, size_t n) { size_t "
                           "local[9] = {n}; for (size_t i = 0; i + 8 < n; ++i) { size_t one; memcpy(&one, (const char "
                           "*)p + i, 8); local[i % 9] += one; total += local[one % 9]; } for (size_t i = 0; i < n; "
                           "++i) total = total * 31 + (unsigned char)names[i & 3][0]; }"}};
    for (const auto& [name, text] : free) {
        const auto prepared = prepare({bitcode_of(name, text)});
        ASSERT_TRUE(prepared) << prepared.error().message();
        EXPECT_FALSE(prepared->pinned) << name;
    }
}

TEST_F(PrepareTest, EveryMissingNameIsNamed) {
    const auto prepared = prepare({bitcode_of("needy.c",
                                              "int nowhere_one(int); extern int nowhere_two; ROVE_ENTRY int e(int n) { "
                                              "return nowhere_one(n) + nowhere_two; }")});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_EQ(prepared->imports, (std::vector<std::string>{"nowhere_one", "nowhere_two"}));
    const auto compiled = compile(prepared->bitcode);
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().code(), ErrorCode::failed);
    EXPECT_NE(compiled.error().message().find("no symbol 'nowhere_one', 'nowhere_two' for sample"), std::string::npos)
        << compiled.error().message();
}

TEST_F(PrepareTest, LibraryCallsOfTheCodeGeneratorAreImports) {
    const auto prepared = prepare({bitcode_of(
        "copy.c", "struct big { char c[4096]; }; ROVE_ENTRY void e(struct big* a, struct big* b) { *a = *b; }")});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_EQ(prepared->imports, (std::vector<std::string>{"memcpy"}));
    EXPECT_TRUE(compile(prepared->bitcode));
}

TEST_F(PrepareTest, BitcodeOfAnotherMachineIsRefused) {
    const auto bitcode = bitcode_of("count.c", kCounter, "aarch64-linux-gnu");
    const auto arm = prepare({bitcode}, false, "aarch64-linux-gnu");
    ASSERT_TRUE(arm) << arm.error().message();
    EXPECT_EQ(arm->statics, 2u);
    EXPECT_FALSE(prepare({bitcode}));
    const auto compiled = compile(arm->bitcode);
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().code(), ErrorCode::unsupported);
}

// 3 KiB of bitcode that would be a gigabyte of code.
TEST_F(PrepareTest, ConstantsBeyondASlicesSizeAreNotWrittenOut) {
    const auto large = [&](const std::string& elements) {
        return bitcode_of("large.c",
                          "static const unsigned char t[" + elements +
                              "];\nconst unsigned char *volatile at = t;\nROVE_ENTRY int f(int n) { return at[n]; }");
    };
    for (const char* elements : {"1ul << 30", "1ul << 60"}) {
        const auto prepared = prepare({large(elements)});
        ASSERT_FALSE(prepared);
        EXPECT_EQ(prepared.error().code(), ErrorCode::unsupported);
        const auto compiled = compile(large(elements));
        ASSERT_FALSE(compiled);
        EXPECT_EQ(compiled.error().code(), ErrorCode::unsupported);
        EXPECT_NE(compiled.error().message().find("more than 67108864 bytes"), std::string::npos)
            << compiled.error().message();
    }
    EXPECT_TRUE(prepare({large("1ul << 20")}));
    const auto zeros = [&](const std::string& elements) {
        return compile(
            bitcode_of("zeros.c", "static char t[" + elements + "];\nROVE_ENTRY int f(int n) { return t[n]++; }"));
    };
    EXPECT_TRUE(zeros("1ul << 20"));
    EXPECT_FALSE(zeros("(1ul << 28) + 1"));
}

TEST_F(PrepareTest, BrokenBitcodeIsAnError) {
    EXPECT_FALSE(compile({}));
    EXPECT_FALSE(prepare({ByteBuffer(64, std::byte{0x42})}));
    const auto prepared = prepare({bitcode_of("count.c", kCounter)});
    ASSERT_TRUE(prepared) << prepared.error().message();
    for (std::size_t size = 1; size < prepared->bitcode.size(); size += 97) {
        const ByteBuffer cut(prepared->bitcode.begin(), prepared->bitcode.begin() + static_cast<std::ptrdiff_t>(size));
        EXPECT_FALSE(compile(cut)) << size;
    }
}

// A report of an error in a parser: its frame is the innermost level's alone, and not every level's.
TEST_F(PrepareTest, ARecursiveFunctionHasNoLargeFrameOfWhatItCalls) {
    const CompiledModule* module = load("parser.c", R"(
#include <stdio.h>
#include <string.h>
static int report(int depth) {
    char text[100000];
    int size = snprintf(text, sizeof text, "wrong at %d", depth);
    memset(text + size, 'x', sizeof text - size - 1);
    text[sizeof text - 1] = 0;
    return (int)strlen(text);
}
static int inner(int depth) { return depth < 0 ? report(depth) : 0; }
static int parse(int depth, const volatile char *outermost) {
    volatile char here = 0;
    if (depth > 0) return parse(depth - 1, outermost) + (here != 0);
    return (int)(outermost - &here) + inner(depth);
}
ROVE_ENTRY int levels(int n) { volatile char here = 0; return parse(n, &here); }
)");
    ASSERT_NE(module, nullptr);
    EXPECT_LT(call(*module, "levels", 20), 20 * 1024) << "bytes of stack for 20 levels";
}

// As what is called where __builtin_cpu_supports() says so.
TEST_F(PrepareTest, CodeForOtherCpusStaysInItsFunction) {
    const auto prepared = prepare({bitcode_of("crc.c", R"(
#include <immintrin.h>
__attribute__((target("sse4.2"))) static unsigned crc(unsigned sum, unsigned value) { return _mm_crc32_u32(sum, value); }
ROVE_ENTRY int crc_of(int n) { return n > 0 ? (int)crc(1, (unsigned)n) : 0; }
)")});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_TRUE(compile(prepared->bitcode));
}

TEST_F(PrepareTest, WhatIsNotToBeOptimisedIsNot) {
    const CompiledModule* module = load("as_it_is.c", R"(
__attribute__((optnone, noinline)) static int as_it_is(void) { int n = 3; return __builtin_constant_p(n); }
static int optimised(void) { int n = 3; return __builtin_constant_p(n); }
ROVE_ENTRY int left_alone(int n) { return n + as_it_is(); }
ROVE_ENTRY int not_left_alone(int n) { return n + optimised(); }
)");
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(call(*module, "left_alone", 5), 5);
    EXPECT_EQ(call(*module, "not_left_alone", 5), 6);
}

TEST_F(PrepareTest, AssemblyThatNamesAStaticIsRefusedWhereOnlyBitcodeIsWanted) {
    const auto bitcode_with = [&](const std::string& assembly) {
        const ByteBuffer module =
            bitcode_of("assembly.c", "int named = 7;\nROVE_ENTRY int go(int n) { int v; __asm__(" + assembly +
                                         "); return v + named++ + n; }\n");
        return compiler_->prepare(
            {.triple = "x86_64-linux-gnu", .modules = {module}, .interface = false, .entries = {}, .object = false});
    };
    const auto refused = bitcode_with(R"("movl named(%%rip), %0" : "=r"(v))");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
    EXPECT_NE(refused.error().message().find("assembly names named"), std::string::npos) << refused.error().message();
    EXPECT_TRUE(bitcode_with(R"("movl %1, %0" : "=r"(v) : "m"(named))"));
}

TEST_F(PrepareTest, AssemblyThatDoesNotTravelIsOfTheFunctionThatHasIt) {
    const auto prepared = prepare({bitcode_of(
        "rept.c",
        "static int fills(int n) { __asm__(\".rept 9; nop; .endr\"); return n; }\nint (*volatile kept)(int);\n"
        "ROVE_ENTRY int keep(int n) { kept = fills; return n; }\n")});
    ASSERT_FALSE(prepared);
    EXPECT_EQ(prepared.error().message(),
              "fills cannot be compiled: its assembly has the directive .rept, which does "
              "not travel; write out what it stands for");
}

// As in the program's file. The optimiser would drop what depends on a value that is never defined.
TEST_F(PrepareTest, UnionsHaveZerosBeyondTheirFirstMember) {
    auto* const module = load("union.c", R"(
union { void *first; struct { int a, b, c, d[4]; } other; } shared = {0};
ROVE_ENTRY int plus(int n) { if (shared.other.c != 0) n = 1000; return n + shared.other.d[n & 3]; }
)");
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(call(*module, "plus", 5), 5);
}

TEST_F(PrepareTest, ManyThreadsCompileAtOnceAndEachKnowsItsOwnSize) {
    const auto small = prepare({bitcode_of("count.c", kCounter)});
    const auto large = prepare({bitcode_of(
        "large.c", "ROVE_ENTRY const char* e(int n) { static const char text[65536] = \"x\"; return text + n; }")});
    ASSERT_TRUE(small && large);
    const std::size_t bytes = (*compile(small->bitcode))->code_bytes();
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (int round = 0; round < 25; ++round) {
                const auto compiled = compile((thread % 2 ? small : large)->bitcode);
                ASSERT_TRUE(compiled) << compiled.error().message();
                if (thread % 2 == 0) {
                    EXPECT_GE((*compiled)->code_bytes(), 65536u);
                    continue;
                }
                EXPECT_EQ((*compiled)->code_bytes(), bytes);
                EXPECT_EQ(call(**compiled, "add", 2), 2);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

// As a local it would be one variable for each thread. The other static is the lock of the critical section.
TEST_F(PrepareTest, AVariableThatAnOpenMpRegionWritesFirstIsOneForAllItsThreads) {
    const std::string team = R"(
static int arrived;
ROVE_ENTRY void team(rove_here *h, const void *p, size_t n) {
#pragma omp parallel num_threads(8)
    {
        arrived = 0;
#pragma omp barrier
#pragma omp critical
        arrived += 1;
#pragma omp barrier
        if (arrived != 8) __builtin_trap();
    }
}
)";
    const auto prepared = prepare({bitcode_of("team.c", team, "x86_64-linux-gnu", "-O2", {"-fopenmp"})});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_EQ(prepared->statics, 2U);
}

TEST_F(PrepareTest, LocksOfOpenMpRegionsGoAlong) {
    const std::string sums = std::string(kOffload) + R"(
static int sum(int n) {
    int all = 0;
#pragma omp parallel for reduction(+ : all)
    for (int i = 0; i < n; ++i) all += i;
    return all;
}
void (*offload)(rove_here*, const void*, size_t) = &rove::detail::Offload<sum>::run;
)";
    const ByteBuffer bitcode = bitcode_of("sums.cpp", sums, "x86_64-linux-gnu", "-O2", {"-fopenmp"});
    const auto all = compiler_->extract_all({.from = {"sums", bitcode}});
    ASSERT_TRUE(all && all->size() == 1U);
    EXPECT_EQ(all->front().facts.obstacle, "");
    const auto prepared = compiler_->prepare({.triple = "x86_64-linux-gnu",
                                              .modules = {all->front().bitcode},
                                              .interface = false,
                                              .entries = all->front().entries});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_EQ(prepared->statics, 1U);
}

}  // namespace
}  // namespace rove::bitcode
