// The results of rove build: forms, sizes, metadata, and the errors.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <set>

#include "workshop.hpp"

namespace rove::toolchain {
namespace {

constexpr std::string_view kThrowing = R"(
#include <stdexcept>
#include <string>
#include <vector>
struct Shape { virtual ~Shape() = default; virtual int area() const = 0; };
struct Square : Shape {
    int side;
    explicit Square(int s) : side(s) {}
    int area() const override { return side * side; }
};
static std::vector<std::string> names{"one", "two"};
__attribute__((noinline)) static Shape* make(int side) {
    if (side < 0) throw std::invalid_argument("negative");
    return new Square(side);
}
ROVE_ENTRY void area(rove_here* here, const void*, size_t size) {
    try {
        const Shape* shape = make(static_cast<int>(size) - 1);
        const int sum = shape->area() + static_cast<int>(names.size());
        delete shape;
        rove_reply(here, &sum, sizeof sum);
    } catch (const std::exception& error) {
        rove_fail(here, error.what());
    }
}
)";

using ToolchainTest = Workshop;

TEST_F(ToolchainTest, ACounterIncrementIsSmallOnBothTargets) {
    const char* tree = std::getenv("ROVE_SOURCE_DIR");
    ASSERT_NE(tree, nullptr);
    const auto package = build_of({.source = std::filesystem::path(tree) / "packages/increment/increment.c"});
    ASSERT_TRUE(package) << package.error().what();
    for (const std::string_view triple : {kX86, kArm}) {
        const wire::Slice* slice = (*package)->manifest().find(triple, Forms::image);
        ASSERT_NE(slice, nullptr) << triple;
        EXPECT_LE(slice->raw_bytes, 256U) << triple;
        EXPECT_EQ(image_of(**package, triple).eh_frame_bytes, 0U) << "C is not unwound through";
        EXPECT_NE((*package)->manifest().find(triple, Forms::bitcode), nullptr);
    }
    EXPECT_FALSE((*package)->manifest().pinned);
    EXPECT_EQ((*package)->manifest().imports, std::vector<std::string>{"rove_reply"});
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
}

TEST_F(ToolchainTest, StaticsAreTheSameInBothFormsAndOutsideOfTheBlock) {
    const auto package = build_of(
        "statics.c",
        "static int table[512]; static int step = 7;\n" +
            entry("next", "static int calls; table[size & 511] += ++calls + step; rove_reply(here, table, 4);") +
            entry("faster", "step++; rove_reply(here, 0, 0);"));
    ASSERT_TRUE(package) << package.error().what();
    EXPECT_FALSE((*package)->manifest().pinned) << "nothing points into its code";
    for (const std::string_view triple : {kX86, kArm}) {
        const wire::Image image = image_of(**package, triple);
        EXPECT_GE(image.data_bytes, 512U * 4 + 8);
        std::set<std::uint32_t> numbers, slots;
        for (const wire::Symbol& symbol : image.symbols)
            if (symbol.kind == wire::Symbol::Kind::static_) numbers.insert(symbol.index);
        for (const wire::Relocation& each : image.relocations)
            if (each.kind == wire::Relocation::Kind::data) slots.insert(each.offset);
        EXPECT_EQ(numbers, (std::set<std::uint32_t>{0, 1, 2})) << triple;
        EXPECT_EQ(slots.size(), 3U) << "one slot of the GOT for each";
    }
}

TEST_F(ToolchainTest, EntriesComeInTheOrderOfTheSource) {
    const auto package =
        build_of("order.c", entry("zebra", "rove_reply(here, 0, 0);") + entry("apple", "rove_reply(here, 0, 0);"));
    ASSERT_TRUE(package) << package.error().what();
    EXPECT_EQ((*package)->manifest().entries, (std::vector<std::string>{"zebra", "apple"}));
}

TEST_F(ToolchainTest, ThrowingCppHasAnImageWithConstructorsAndUnwindTables) {
    const auto package = build_of("shapes.cpp", kThrowing);
    ASSERT_TRUE(package) << package.error().what();
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
    EXPECT_TRUE((*package)->manifest().pinned) << "its objects point to its vtables";
    for (const std::string_view triple : {kX86, kArm}) {
        const wire::Image image = image_of(**package, triple);
        EXPECT_EQ(image.init_array_count, 1U) << triple;
        ASSERT_GT(image.eh_frame_bytes, 4U) << triple;
        // Padding in front of the first record would read as the end of the table.
        std::uint32_t first_record = 0;
        std::memcpy(&first_record, image.block.data() + image.eh_frame_offset, sizeof first_record);
        EXPECT_NE(first_record, 0U) << triple;
    }
    const auto& imports = (*package)->manifest().imports;
    for (const char* name : {"__gxx_personality_v0", "_Unwind_Resume", "__cxa_atexit"})
        EXPECT_NE(std::find(imports.begin(), imports.end(), name), imports.end()) << name;
}

// The unwinder walks the table from its first byte and trusts every length. A table that began in the padding before it
// crashed the node at the first throw; how much padding there is depends on the exception tables before it.
TEST_F(ToolchainTest, UnwindTablesAreWholeRecordsWhateverLiesBeforeThem) {
    std::string catches;
    for (const char* type : {"int", "char", "long", "short", "float"}) {
        catches += std::string(" catch (") + type + ") { rove_fail(here, \"" + type + "\"); }";
        const auto package = build_of(
            "thrower.cpp", entry("go", "try { if (size > 1) throw 1; rove_reply(here, payload, 0); }" + catches));
        ASSERT_TRUE(package) << package.error().what();
        for (const std::string_view triple : {kX86, kArm}) {
            const wire::Image image = image_of(**package, triple);
            Reader table(Bytes(image.block).subspan(image.eh_frame_offset, image.eh_frame_bytes));
            std::size_t records = 0;
            for (std::uint32_t bytes = 0; (bytes = table.number<std::uint32_t>()) != 0; ++records) table.take(bytes);
            EXPECT_TRUE(table.ok()) << triple << catches;
            EXPECT_TRUE(std::ranges::all_of(table.rest(), [](std::byte byte) { return byte == std::byte{0}; }))
                << triple << catches;
            EXPECT_GE(records, 2U) << triple << catches;  // one common record, one of the function's
        }
    }
}

// What a linker and a loader of whole programs provide.
TEST_F(ToolchainTest, WhatCouldNotRunThereIsRefused) {
    const auto why = [this](std::string_view before, std::string_view body) {
        BuildOptions options;
        options.source =
            write("refused.c", "#include <rove/rove.h>\n" + std::string(before) + "\n" + entry("go", body));
        options.output = folder() / "refused.rove";
        options.targets = {std::string(kX86)};
        const Status built = toolchain::build(options);
        return built ? std::string() : built.error().message();
    };
    EXPECT_NE(why("static int wide __attribute__((aligned(8192))) = 1;", "rove_reply(here, &wide, sizeof wide);")
                  .find("wide is aligned to 8192 bytes"),
              std::string::npos);
    EXPECT_NE(why("static const int wide[3] __attribute__((aligned(8192))) = {1, 2, 3};",
                  "rove_reply(here, &wide[size], sizeof(int));")
                  .find("wide is aligned to 8192 bytes"),
              std::string::npos);
    EXPECT_EQ(why("static int wide __attribute__((aligned(4096))) = 1;", "rove_reply(here, &wide, sizeof wide);"), "");
    EXPECT_NE(why("__attribute__((target_clones(\"avx2\", \"default\"))) static int twice(int x) { return 2 * x; }",
                  "int two = twice((int)size); rove_reply(here, &two, sizeof two);")
                  .find("twice is chosen by the CPU"),
              std::string::npos);
    EXPECT_NE(why("__attribute__((section(\"mine\"), used)) static int one = 1; extern int __start_mine;",
                  "rove_reply(here, &__start_mine, sizeof(int));")
                  .find("__start_mine is the bound of a section"),
              std::string::npos);
    EXPECT_NE(why("extern char _end[];", "char *end = _end; rove_reply(here, &end, sizeof end);")
                  .find("_end is a bound of a program's own memory"),
              std::string::npos);
    EXPECT_NE(why("extern char __ehdr_start[];", "rove_reply(here, __ehdr_start, 1);")
                  .find("__ehdr_start is a bound of a program's own memory"),
              std::string::npos);
    EXPECT_NE(why("extern void (*__init_array_start[])(void);", "__init_array_start[0](); rove_reply(here, 0, 0);")
                  .find("__init_array_start is a bound of a program's own memory"),
              std::string::npos);
    for (const char* section : {".init_array", ".preinit_array", ".fini_array.00100"})
        EXPECT_NE(why("static void begin(void) {} __attribute__((section(\"" + std::string(section) +
                          "\"), used)) static void (*at)(void) = begin;",
                      "rove_reply(here, 0, 0);")
                      .find("at is in the section " + std::string(section) + ", which is run when a program is loaded"),
                  std::string::npos);
    EXPECT_NE(why("extern char etext;", "char *end = &etext; rove_reply(here, &end, sizeof end);")
                  .find("etext is a bound of a program's own memory"),
              std::string::npos);
    EXPECT_EQ(why("void end(void);", "end(); rove_reply(here, 0, 0);"), "") << "a function may be an interface's";
    EXPECT_NE(why("extern char end;", "char *at = &end; rove_reply(here, &at, sizeof at);").find("end is a bound of"),
              std::string::npos);
    EXPECT_EQ(why("extern char _end[]; char *top(void) { return _end; }\n"
                  "__attribute__((target_clones(\"avx2\", \"default\"))) int twice(int x) { return 2 * x; }",
                  "rove_reply(here, 0, 0);"),
              "")
        << "nothing that travels uses them";
    EXPECT_NE(why("static int kept __attribute__((used)) = 5;",
                  "int x; __asm__(\"movl kept(%%rip), %0\" : \"=r\"(x)); rove_reply(here, &x, sizeof x);")
                  .find("assembly names kept"),
              std::string::npos);
    EXPECT_NE(why("static int dropped = 5;",  // because the compiler sees no use of it
                  "int x; __asm__(\"movl dropped(%%rip), %0\" : \"=r\"(x)); rove_reply(here, &x, sizeof x);")
                  .find("assembly names dropped, which no other code here names"),
              std::string::npos);
    EXPECT_EQ(why("static int operand = 5;",
                  "int x; __asm__(\"movl %1, %0\" : \"=r\"(x) : \"m\"(operand)); rove_reply(here, &x, sizeof x);"),
              "");
    EXPECT_NE(
        why("static int operand = 5;",
            "int *x; __asm__(\"lea %P1(%%rip), %0\" : \"=r\"(x) : \"i\"(&operand)); ++*x; rove_reply(here, x, 4);")
            .find("constraint 'i': an address is no constant in code that travels; give the assembly the variable "
                  "as \"m\", or its address as \"r\""),
        std::string::npos);
    EXPECT_EQ(why("", "__asm__ volatile(\"call abort@PLT\" : : : \"memory\"); rove_reply(here, 0, 0);"), "");
    EXPECT_EQ(why("void *memcpy(void *to, const void *from, size_t n) { for (; n--;) ((char *)to)[n] = ((const char "
                  "*)from)[n]; return to; } struct big { char b[300]; }; struct big a; volatile struct big b;",
                  "memcpy(&a, payload, size); a = *(struct big *)&b; rove_reply(here, &a, sizeof a);"),
              "");
}

TEST_F(ToolchainTest, CallsOfASanitizersRuntimeAreRefused) {
    const std::string text =
        "#include <rove/rove.h>\n" + entry("go", "int next = (int)size + 1; rove_reply(here, &next, sizeof next);");
    const auto with = [&](const std::string& flag) {
        return build_of({.source = write("checked.c", text), .compiler_flags = {flag}});
    };
    const auto package = with("-fsanitize=undefined");
    ASSERT_FALSE(package);
    EXPECT_EQ(package.error().code(), ErrorCode::unsupported);
    EXPECT_TRUE(
        mentions(package.error().message(),
                 "it calls __ubsan_handle_add_overflow, which only a program built with -fsanitize=undefined has"))
        << package.error().message();
    EXPECT_TRUE(with("-fsanitize=address"));
    EXPECT_TRUE(with("-fsanitize=thread"));
}

// The linker defines some names itself. Bound to those, a constructor would give the node a wild pointer.
TEST_F(ToolchainTest, TheHandleOfDestructorsIsBoundByTheNode) {
    const auto package =
        build_of("global.cpp", "struct S { int* p; S() : p(new int(1)) {} ~S() { delete p; } };\nstatic S s;\n" +
                                   entry("get", "rove_reply(here, s.p, sizeof *s.p);"));
    ASSERT_TRUE(package) << package.error().what();
    const auto& imports = (*package)->manifest().imports;
    const auto handle = std::find(imports.begin(), imports.end(), wire::kDsoHandle);
    ASSERT_NE(handle, imports.end());
    for (const std::string_view triple : {kX86, kArm}) {
        const wire::Image image = image_of(**package, triple);
        EXPECT_TRUE(std::any_of(image.relocations.begin(), image.relocations.end(), [&](const wire::Relocation& each) {
            return each.kind == wire::Relocation::Kind::import &&
                   each.import == static_cast<std::uint32_t>(handle - imports.begin());
        })) << triple;
    }
    EXPECT_TRUE((*package)->manifest().pinned);
}

TEST_F(ToolchainTest, MoreStaticsThanANodeTakesMeanNoImage) {
    const auto package = build_of("huge.c", "static char huge[5UL << 30];\n" +
                                                entry("get", "huge[size]++; rove_reply(here, huge + size / 2, 1);"));
    ASSERT_TRUE(package) << package.error().what();
    ASSERT_FALSE(warnings_.empty());
    EXPECT_EQ((*package)->manifest().find(kX86, Forms::image), nullptr);
}

TEST_F(ToolchainTest, ThreadLocalStorageHasAnImageWhoseControlObjectIsAStatic) {
    const auto package =
        build_of("tls.c", "static __thread int n = 3;\n" + entry("count", "n++; rove_reply(here, &n, sizeof n);"));
    ASSERT_TRUE(package) << package.error().what();
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
    EXPECT_TRUE((*package)->manifest().pinned);
    for (const std::string_view triple : {kX86, kArm}) {
        const wire::Image image = image_of(**package, triple);
        EXPECT_EQ(image.data_bytes, 32U) << triple;
        EXPECT_TRUE(std::ranges::any_of(image.symbols, [](const wire::Symbol& symbol) {
            return symbol.kind == wire::Symbol::Kind::static_ && symbol.segment == wire::Segment::data;
        })) << triple;
        EXPECT_NE((*package)->manifest().find(triple, Forms::bitcode), nullptr);
    }
}

TEST_F(ToolchainTest, CodeThatStaticsPointToIsPinned) {
    const auto package = build_of(
        "hook.c",
        "static int (*hook)(int);\nstatic int one(int x) { return x + 1; }\nstatic int two(int x) { return x * 2; }\n" +
            entry("set", "hook = size > 3 ? one : two; rove_reply(here, 0, 0);") +
            entry("run", "int v = hook ? hook((int)size) : 0; rove_reply(here, &v, sizeof v);"));
    ASSERT_TRUE(package) << package.error().what();
    EXPECT_TRUE((*package)->manifest().pinned);
}

// Its constants go with the code, its statics do not.
TEST_F(ToolchainTest, CodeWhoseConstantsStaticsMayPointToIsPinned) {
    const std::string head =
        "#include <stdlib.h>\n#include <string.h>\n"
        "struct state { const char* name; const struct state* next; };\n"
        "static const struct state last = {\"last\", 0}, first = {\"first\", &last};\n"
        "static const int numbers[] = {1, 2, 3, 5, 8, 13};\n"
        "static const char text[] = \"a text in which something is found\";\n"
        "static const struct state* now; static struct state own; static const char* found; static const int* at;\n"
        "__attribute__((noinline)) static void keep(const char* s, size_t n) { if (n < 100) found = s; }\n";
    const std::pair<std::string_view, std::string_view> pinned[] = {
        {"loaded out of a constant", "now = size > 3 ? first.next : now; rove_reply(here, now, now ? 1 : 0);"},
        {"copied with a constant", "rove_reply(here, &own, own.name ? 1 : 0); own = size > 3 ? first : last;"},
        {"given back by a call", "rove_reply(here, found, found ? 1 : 0); found = strchr(text, (int)size);"},
        {"kept by a call", "rove_reply(here, found, found ? 1 : 0); keep(\"one\", size);"},
        {"an element", "rove_reply(here, at, at ? 1 : 0); at = &numbers[size % 6];"}};
    const std::pair<std::string_view, std::string_view> pinned_by_others[] = {
        {"kept by an interface's variable", "extern const struct state* shelf; shelf = size > 3 ? first.next : shelf;"},
        {"kept by the program's object",
         "*(const struct state**)rove_host_object(here) = size > 3 ? first.next : &last;"}};
    for (const auto& [what, body] : pinned_by_others) {
        const auto package = build_of("pinned.c",
                                      "struct state { const char* name; const struct state* next; };\n"
                                      "static const struct state last = {\"last\", 0}, first = {\"first\", &last};\n" +
                                          entry("run", body));
        ASSERT_TRUE(package) << package.error().what();
        EXPECT_TRUE((*package)->manifest().pinned) << what;
    }
    for (const auto& [what, body] : pinned) {
        const auto package = build_of("pinned.c", head + entry("run", body));
        ASSERT_TRUE(package) << package.error().what();
        EXPECT_TRUE((*package)->manifest().pinned) << what;
    }
    const std::pair<std::string_view, std::string_view> free[] = {
        {"read by an index", "own.name = malloc(numbers[size % 6]); rove_reply(here, own.name, 1);"},
        {"compared, measured, copied and answered",
         "static char* copy; if (!copy) copy = malloc(64); if (strcmp(copy, \"some words\") != 0) strcpy(copy, text); "
         "rove_reply(here, \"yes\", strlen(copy) > 3 ? 3 : 0);"}};
    for (const auto& [what, body] : free) {
        const auto package = build_of("free.c", head + entry("run", body));
        ASSERT_TRUE(package) << package.error().what();
        EXPECT_FALSE((*package)->manifest().pinned) << what;
    }
}

// What LLVM would call libatomic for.
TEST_F(ToolchainTest, AtomicsOfSixteenBytesHaveAnImageAndNeedNoLibrary) {
    const auto package = build_of(
        "wide.c",
        "#include <stdatomic.h>\nstruct pair { long a, b; }; static _Atomic struct pair kept; static _Atomic __int128 "
        "sum;\n" +
            entry("set",
                  "struct pair p = {size, 1}; atomic_store(&kept, p); sum += 3; rove_reply(here, &p, sizeof p);") +
            entry("get", "struct pair p = atomic_load(&kept); rove_reply(here, &p, sizeof p);"));
    ASSERT_TRUE(package) << package.error().what();
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
    EXPECT_EQ((*package)->manifest().imports, std::vector<std::string>{"rove_reply"});
}

TEST_F(ToolchainTest, OtherAtomicsNameTheLibraryThatHasThem) {
    const std::string text =
        "#include <rove/rove.h>\n#include <stdatomic.h>\nstruct three { long a, b, c; }; static "
        "_Atomic struct three kept;\n" +
        entry("get", "struct three t = atomic_load(&kept); rove_reply(here, &t, sizeof t);");
    ASSERT_TRUE(build_of({.source = write("three.c", text)}));
    ASSERT_EQ(warnings_.size(), 1U) << "over both targets";
    EXPECT_TRUE(mentions(warnings_.front(), "__atomic_load, which is libatomic's")) << warnings_.front();
    EXPECT_TRUE(mentions(warnings_.front(), "--dep libatomic.so.1")) << warnings_.front();
    warnings_.clear();
    ASSERT_TRUE(build_of({.source = folder() / "three.c", .dependencies = {"libatomic.so.1"}}));
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
}

TEST_F(ToolchainTest, ThreadLocalsOfLibrariesAreNamed) {
    ASSERT_TRUE(build_of("counts.c", "extern __thread int counted;\n" +
                                         entry("count", "++counted; rove_reply(here, &counted, sizeof counted);")));
    ASSERT_EQ(warnings_.size(), 1U) << "over both targets";
    EXPECT_TRUE(mentions(warnings_.front(), "it uses the thread-local variable counted of a library"))
        << warnings_.front();
    warnings_.clear();
    ASSERT_TRUE(build_of("once.cpp", "#include <mutex>\nstatic std::once_flag once; static int times;\n" +
                                         entry("count",
                                               "std::call_once(once, [] { ++times; }); rove_reply(here, &times, "
                                               "sizeof times);")));
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
}

TEST_F(ToolchainTest, CodeThatIsNotOptimisedHasAnImage) {
    const std::string text =
        "#include <rove/rove.h>\n#include <string.h>\nstruct big { char b[3000]; };\n" +
        entry("go", "struct big a, b; memset(&a, (int)size, sizeof a); b = a; rove_reply(here, &b, sizeof b);");
    ASSERT_TRUE(build_of({.source = write("slow.c", text), .compiler_flags = {"-O0"}}));
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
}

TEST_F(ToolchainTest, AReplacedOperatorNewStaysWithAWarning) {
    const auto package = build_of(
        "own.cpp",
        "#include <cstdlib>\n#include <new>\nstatic int calls = 0;\n"
        "void* operator new(std::size_t size) { ++calls; return std::malloc(size); }\n"
        "void operator delete(void* block, std::size_t) noexcept { ++calls; std::free(block); }\n"
        "struct Own { void* operator new(std::size_t size) { ++calls; return std::malloc(size); } int n = 0; };\n" +
            entry("run",
                  "int* volatile p = new int(3); delete p; Own* volatile own = new Own; std::free(own); "
                  "rove_reply(here, &calls, sizeof calls);"));
    ASSERT_TRUE(package) << package.error().what();
    ASSERT_EQ(warnings_.size(), 1U) << "over both targets";
    EXPECT_EQ(warnings_.front(),
              "operator delete(void*, unsigned long), operator new(unsigned long) are replaced in this package: what "
              "travels uses the node's");
    const auto& imports = (*package)->manifest().imports;
    for (const char* name : {"_Znwm", "_ZdlPvm"})
        EXPECT_NE(std::find(imports.begin(), imports.end(), name), imports.end()) << name;
}

TEST_F(ToolchainTest, AReplacedMallocStaysWithAWarning) {
    const auto package =
        build_of("own.c",
                 "#include <string.h>\nstatic char pool[4096]; static size_t used; static void *volatile kept;\n"
                 "void *malloc(size_t size) { used += size; return pool + used - size; }\n"
                 "void free(void *block) { if ((char *)block < pool) used = 0; }\n"
                 "char *strndup(const char *text, size_t most) { return most != 0 ? (char *)text : pool; }\n"
                 "__attribute__((noinline)) static void *valloc(size_t size) { return pool + size; }\n" +
                     entry("run",
                           "char *copy = strdup((const char *)payload); free(copy); free(strndup(copy, size)); kept = "
                           "malloc(size); kept = valloc(size); "
                           "rove_reply(here, &used, sizeof used);"));
    ASSERT_TRUE(package) << package.error().what();
    ASSERT_EQ(warnings_.size(), 1U) << "over both targets";
    EXPECT_EQ(warnings_.front(), "free, malloc, strndup are replaced in this package: what travels uses the node's");
    std::vector<std::string> imports = (*package)->manifest().imports;
    std::sort(imports.begin(), imports.end());
    EXPECT_EQ(imports, (std::vector<std::string>{"free", "malloc", "rove_reply", "strdup", "strndup"}))
        << "valloc is its own";
}

TEST_F(ToolchainTest, AFunctionOfTheNameStrdupIsThePackagesOwn) {
    const auto package =
        build_of("own.c", "char *strdup(const char *text) { return (char *)text + 1; }\n" +
                              entry("run", "const char *copy = strdup(payload); rove_reply(here, copy, size - 1);"));
    ASSERT_TRUE(package) << package.error().what();
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
    EXPECT_EQ((*package)->manifest().imports, std::vector<std::string>{"rove_reply"});
}

TEST_F(ToolchainTest, AFolderIsOnePackage) {
    write("pair/b.c", "int shared_count;\nint twice(int x) { shared_count++; return 2 * x; }\n");
    write("pair/a.c", "#include <rove/rove.h>\nint twice(int); extern int shared_count;\n" +
                          entry("both", "int v = twice((int)size) + shared_count; rove_reply(here, &v, sizeof v);"));
    write("pair/notes.txt", "not a source");
    const auto package = build_of({.source = folder() / "pair/"});
    ASSERT_TRUE(package) << package.error().what();
    EXPECT_EQ((*package)->manifest().name, "pair");
    EXPECT_EQ((*package)->manifest().imports, std::vector<std::string>{"rove_reply"});
    EXPECT_TRUE(warnings_.empty());
}

TEST_F(ToolchainTest, AStandardIsForTheSourcesOfItsLanguage) {
    write("both/a.c", "#include <rove/rove.h>\n#if __STDC_VERSION__ != 199901L\n#error C\n#endif\nint b(void);\n" +
                          entry("go", "int v = b(); rove_reply(here, &v, sizeof v);"));
    write("both/b.cpp", "#if __cplusplus != 201703L\n#error C++\n#endif\nextern \"C\" int b() { return 3; }\n");
    write("both/c.S", ".globl nobody\n");
    const auto package =
        build_of({.source = folder() / "both/", .compiler_flags = {"-std=c++17", "-std=c99", "-DONE=1"}});
    ASSERT_TRUE(package) << package.error().what();
    ASSERT_EQ(warnings_.size(), 1U);
    EXPECT_NE(warnings_.front().find("c.S is left out: assembly has no bitcode"), std::string::npos);
    const auto usual = build_of("usual.cpp", "#ifdef __STRICT_ANSI__\n#error strict\n#endif\n" + entry("go", ";"));
    ASSERT_TRUE(usual) << usual.error().what();
}

TEST_F(ToolchainTest, AnInterfaceOffersWhatIsNotStatic) {
    const auto package = build_of(
        {.source = write("shelf.c", "int level;\nstatic int hidden;\nint raise(void) { return ++level + hidden++; }\n"),
         .interface = true});
    ASSERT_TRUE(package) << package.error().what();
    auto exports = (*package)->manifest().exports;
    std::sort(exports.begin(), exports.end());
    EXPECT_EQ(exports, (std::vector<std::string>{"level", "raise"}));
}

TEST_F(ToolchainTest, OneSourceGivesOneDigest) {
    const std::string text = entry("same", "rove_reply(here, payload, size);");
    const auto first = build_of("same.c", text), second = build_of("same.c", text);
    ASSERT_TRUE(first && second);
    EXPECT_EQ((*first)->digest(), (*second)->digest());
    const auto third = build_of("same.c", entry("same", "rove_reply(here, payload, size / 2);"));
    ASSERT_TRUE(third);
    EXPECT_NE((*first)->function_ids(), (*third)->function_ids());
}

TEST_F(ToolchainTest, Aarch64CodeDisassembles) {
    const auto package = build_of("shapes.cpp", kThrowing);
    ASSERT_TRUE(package) << package.error().what();
    // The code of a function is written out and read by the assembler's own decoder.
    const wire::Image image = image_of(**package, kArm);
    const auto at = std::find_if(image.symbols.begin(), image.symbols.end(),
                                 [](const wire::Symbol& s) { return s.kind == wire::Symbol::Kind::entry; });
    ASSERT_NE(at, image.symbols.end());
    ASSERT_EQ(at->offset % 4, 0U);
    std::string words;
    for (std::size_t i = at->offset; i < at->offset + 32; ++i)
        words += fmt::format("0x{:02x} ", std::to_integer<unsigned>(image.block[i]));
    const Ran text = run_command({"llvm-mc-19", "--disassemble", "--triple=aarch64", write("words", words).string()});
    EXPECT_EQ(text.status, 0) << text.out;
    EXPECT_FALSE(mentions(text.out, "invalid instruction")) << text.out;
}

TEST_F(ToolchainTest, BitcodeOfBothTargetsVerifies) {
    const auto package = build_of("shapes.cpp", kThrowing);
    ASSERT_TRUE(package) << package.error().what();
    for (const std::string_view triple : {kX86, kArm}) {
        const auto raw = (*package)->raw_slice(*(*package)->slice_index(triple, Forms::bitcode));
        ASSERT_TRUE(raw) << raw.error().what();
        const Ran checked =
            run_command({"opt-19", "-passes=verify", "-disable-output", write("code.bc", as_text(*raw)).string()});
        EXPECT_EQ(checked.status, 0) << checked.out;
        const Ran text = run_command({"llvm-dis-19", "-o", "-", (folder() / "code.bc").string()});
        EXPECT_FALSE(mentions(text.out, "target-cpu")) << "compiled for the CPU that is there, not for this one";
    }
}

TEST_F(ToolchainTest, TheHeaderCompilesAsCAndAsCpp) {
    BuildOptions options{
        .source = write("two-words.c", "#include <rove/rove.h>\n" + entry("go", "rove_reply(here, 0, 0);")),
        .header = folder() / "made.h"};
    const auto package = build_of(options);
    ASSERT_TRUE(package) << package.error().what();
    const std::string use =
        "#include \"made.h\"\n#include <string.h>\n"
        "static const unsigned char id[16] = ROVE_PACKAGE_TWO_WORDS_GO_ID_BYTES;\n"
        "int main(void) { return strcmp(ROVE_PACKAGE_TWO_WORDS_GO_ID, \"" +
        (*package)->function_ids()[0].hex() +
        "\") != 0 || id[0] != " + std::to_string((*package)->function_ids()[0].bytes[0]) +
        " || strcmp(ROVE_PACKAGE_TWO_WORDS_GO_NAME, \"go\") != 0; }\n";
    write("use.c", use);
    write("use.cpp", use);
    const std::string program = (folder() / "use").string();
    for (const auto& [compiler, source] :
         {std::pair{"clang-19", "use.c"}, {"clang++-19", "use.cpp"}, {"gcc", "use.c"}, {"g++", "use.cpp"}}) {
        const Ran compiled =
            run_command({compiler, "-Wall", "-Wextra", "-Werror", "-o", program, (folder() / source).string()});
        EXPECT_EQ(compiled.status, 0) << compiler << ": " << compiled.out;
        EXPECT_EQ(run_command({program}).status, 0) << compiler;
    }
}

// The linker runs in this process, and would handle its signals for good.
TEST_F(ToolchainTest, LeavesTheProcesssSignalsAsTheyAre) {
    const auto handlers = [] {
        std::vector<void (*)(int)> all;
        for (int number = 1; number < SIGRTMIN; ++number) {
            struct sigaction action{};
            if (sigaction(number, nullptr, &action) == 0) all.push_back(action.sa_handler);
        }
        return all;
    };
    const auto before = handlers();
    ASSERT_TRUE(build_of("plain.c", "#include <rove/rove.h>\n" + entry("go", "rove_reply(here, 0, 0);")));
    EXPECT_EQ(handlers(), before);
}

TEST_F(ToolchainTest, DependenciesAreBareSonames) {
    const auto source = write("dep.c", "#include <rove/rove.h>\n" + entry("go", "rove_reply(here, 0, 0);"));
    const auto package = build_of({.source = source, .dependencies = {"libz.so.1"}});
    ASSERT_TRUE(package) << package.error().what();
    EXPECT_EQ((*package)->manifest().dependencies, std::vector<std::string>{"libz.so.1"});
    const auto refused = build_of({.source = source, .dependencies = {"/lib/libz.so.1"}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::invalid);
}

}  // namespace
}  // namespace rove::toolchain
