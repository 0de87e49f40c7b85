// Constructors of packages, and the threads in which they run.
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "code/cache_state.hpp"
#include "compiling_fixture.hpp"

namespace rove::code {
namespace {

using namespace std::chrono_literals;

// They are a peer's code: nobody waits for them but the calls of their own package.
TEST_F(CompilingTest, ConstructorsKeepNoOtherFromRunning) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        const Forms form = forms == Forms::image ? Forms::image : Forms::bitcode;
        CodeCache cache(waiting_options(forms));
        ASSERT_TRUE(cache.add(arriving(*build("built.cpp", kConstructed), {form}), false));
        Function* built = cache.find("built:go");
        ASSERT_TRUE(std::holds_alternative<Awaited>(cache.enter(*built)));
        ASSERT_TRUE(have_begun(1));
        EXPECT_TRUE(std::holds_alternative<Awaited>(cache.enter(*built))) << "it is not ready before they have run";
        const auto other = arriving(*build("other.c", kCounter), {form});
        ASSERT_TRUE(cache.add(other, false));
        ASSERT_TRUE(cache.load(other));  // compiled, too
        EXPECT_EQ(call(cache, *cache.find("other:count")), 41);
        constructors->word.set_value();
        EXPECT_EQ(call(cache, *built), 7);
        EXPECT_EQ(constructors->begun, 1);
    }
}

TEST_F(CompilingTest, LoadsOfOnePackageWaitForItsConstructorsAndOthersDoNot) {
    CodeCache cache(waiting_options(Forms::image));
    const auto built = arriving(*build("built.cpp", kConstructed), {Forms::image});
    const auto other = arriving(*build("other.c", kCounter), {Forms::image});
    ASSERT_TRUE(cache.add(built, false));
    ASSERT_TRUE(cache.add(other, false));
    Loading first, second, third;
    ASSERT_TRUE(first.begin(cache, built));
    ASSERT_TRUE(have_begun(1));
    ASSERT_TRUE(second.begin(cache, built));
    std::vector<Loading*> waiting{&first, &second};
    std::vector<Loading> more(CodeCache::kLoadsOfPackageMax);
    for (Loading& each : more)
        if (each.begin(cache, built)) waiting.push_back(&each);
    EXPECT_EQ(waiting.size(), CodeCache::kLoadsOfPackageMax) << "one package takes all places";
    ASSERT_TRUE(third.begin(cache, other));
    ASSERT_TRUE(third.ended()) << "it waits for constructors of another package";
    EXPECT_EQ(third.told.get(), "");
    constructors->word.set_value();
    for (Loading* each : waiting) {
        ASSERT_TRUE(each->ended());
        EXPECT_EQ(each->told.get(), "");
    }
    EXPECT_EQ(constructors->begun, 1);
}

TEST_F(CompilingTest, MoreConstructorsThanMayRunAreRefused) {
    CodeCache cache(waiting_options(Forms::image));
    const auto enter = [&](std::size_t i) {
        const std::string name = "built" + std::to_string(i);
        EXPECT_TRUE(cache.add(arriving(*build(name + ".cpp", kConstructed), {Forms::image}), false));
        return cache.find(name + ":go");
    };
    for (std::size_t i = 0; i < kConstructingMax; ++i)
        ASSERT_TRUE(std::holds_alternative<Awaited>(cache.enter(*enter(i))));
    ASSERT_TRUE(have_begun(static_cast<int>(kConstructingMax)));
    Function* more = enter(kConstructingMax);
    std::string refused;
    for (const auto until = std::chrono::steady_clock::now() + kPatience;
         refused.empty() && std::chrono::steady_clock::now() < until;)
        refused = error_of(cache, *more);
    EXPECT_NE(refused.find("package built16 has constructors"), std::string::npos) << refused;
    constructors->word.set_value();
    cache.wait_for_tiers();
    EXPECT_EQ(call(cache, *more), 7) << "and later there is room";
}

// It is for the calls that wait: later ones find out for themselves.
TEST_F(CompilingTest, ARefusalAnswersNoLaterCall) {
    CodeCache cache(waiting_options(Forms::image));
    const auto enter = [&](std::size_t i) {
        const std::string name = "built" + std::to_string(i);
        EXPECT_TRUE(cache.add(arriving(*build(name + ".cpp", kConstructed), {Forms::image}), false));
        EXPECT_TRUE(std::holds_alternative<Awaited>(cache.enter(*cache.find(name + ":go"))));
        return cache.find(name + ":go");
    };
    for (std::size_t i = 0; i < kConstructingMax; ++i) (void)enter(i);
    ASSERT_TRUE(have_begun(static_cast<int>(kConstructingMax)));
    Loading behind;
    Function* refused = enter(kConstructingMax);
    const auto last = arriving(*build("last.c", kCounter), {Forms::image});
    ASSERT_TRUE(cache.add(last, false));
    ASSERT_TRUE(behind.begin(cache, last));
    ASSERT_TRUE(behind.ended()) << "the one before it has been refused by now";
    constructors->word.set_value();
    cache.wait_for_tiers();
    std::this_thread::sleep_for(kRefusalMax + 10ms);
    EXPECT_EQ(call(cache, *refused), 7);
}

// Pinned code takes its place before its constructors run, however long they do.
TEST_F(CompilingTest, WhatIsBeingConstructedHasItsPlace) {
    CodeOptions given = waiting_options(Forms::image);
    given.code_bytes_max = 1;  // so pinned code has kShareBytesMin
    CodeCache cache(given);
    const auto enter = [&](const std::string& name) {
        const auto package = build(name + ".cpp",
                                   "extern \"C\" int wait_for_word(); static int s = wait_for_word();\n"
                                   "static const unsigned char filled[700000] = {1};\nROVE_ENTRY void go(rove_here *h, "
                                   "const void *p, size_t n) { *(long *)p = s + filled[n]; (void)h; }");
        wire::Manifest manifest = package->manifest();
        manifest.pinned = true;
        const std::size_t slice = *package->slice_index(host_triple(), Forms::image);
        manifest.slices = {manifest.slices[slice]};
        const auto pinned = PackageStore::from_manifest(wire::encode(manifest)).value();
        EXPECT_TRUE(pinned->add_slice(0, *package->stored_slice(slice)));
        EXPECT_TRUE(cache.add(pinned, false));
        return cache.find(name + ":go");
    };
    Function* first = enter("first");
    ASSERT_TRUE(std::holds_alternative<Awaited>(cache.enter(*first)));
    ASSERT_TRUE(have_begun(1));
    EXPECT_GT(cache.usage().pinned_bytes, 700'000U);
    const std::string refused = outcome(cache, *enter("second"));
    EXPECT_NE(refused.find("cannot be evicted"), std::string::npos) << refused;
    EXPECT_NE(refused.find("first ("), std::string::npos) << refused;
    EXPECT_EQ(constructors->begun, 1);
    constructors->word.set_value();
    EXPECT_EQ(outcome(cache, *first), kEntered);
}

// The node outlives it, and runs nothing of it that is not there any more.
TEST_F(CompilingTest, WhatWasConstructedEndsWhereAConstructorThrows) {
    constexpr const char* kThrows =
        "extern \"C\" void note(long);\n"
        "struct first { first() { note(1); } ~first() { note(2); } };\nstatic first f;\n"
        "static int fail() { note(3); throw 7; }\nstatic int s = fail();\n"
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = s; (void)h, (void)n; }";
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        noted.clear();
        {
            CodeCache cache(options(form == Forms::image ? Forms::image : Forms::bitcode));
            ASSERT_TRUE(cache.add(arriving(*build("built.cpp", kThrows), {form}), false));
            Function* built = cache.find("built:go");
            const std::string error = outcome(cache, *built);
            EXPECT_NE(error.find("a constructor of package built on node 7 let an exception out"), std::string::npos)
                << error;
            EXPECT_GT(cache.usage().pinned_bytes, 0U) << "whoever has its addresses finds its code";
            const auto shelf =
                cache.add(arriving(*build("shelf.c", "int shelf(void) { return 8; }", true), {form}), false);
            ASSERT_TRUE(shelf && cache.load_interface(*shelf));
            EXPECT_EQ(outcome(cache, *built), error) << "its constructors run once at most";
        }
        EXPECT_EQ(noted, (std::vector<long>{1, 3, 2})) << wire::to_string(form);
    }
}

// As natively, where the thread that constructs them is main()'s.
TEST_F(CompilingTest, ThreadLocalsThatConstructorsReferToStay) {
    constexpr const char* kRefers = R"(
extern "C" void note(long);
static thread_local long value = 40;
struct Told { long id; ~Told() { note(id); } };
static thread_local Told of_thread{1};
static Told& used = of_thread;  // from now on it is to be destroyed
static long& kept = value;
struct Guest { ~Guest() { note(kept); } };
static Guest guest;
ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = ++kept + used.id - 1; }
)";
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        noted.clear();
        {
            CodeCache cache(options(form));
            ASSERT_TRUE(cache.add(arriving(*build("refers.cpp", kRefers), {form}), false));
            EXPECT_EQ(call(cache, *cache.find("refers:go")), 41);
            const std::vector<char> others(1 << 20, 'x');  // where freed memory would be found again
            EXPECT_EQ(call(cache, *cache.find("refers:go")), 42);
            EXPECT_EQ(noted, std::vector<long>{});
        }
        EXPECT_EQ(noted, (std::vector<long>{1, 42}))
            << "thread-local objects end before statics, their memory after them";
    }
}

TEST_F(CompilingTest, WhatWasConstructedEndsBeforeTheMemoryOfThreadLocals) {
    constexpr const char* kThrows = R"(
extern "C" void note(long);
static thread_local long value = 40;
struct Guest { long& kept; ~Guest() { note(kept); } };
static Guest guest{value};
static int fail() { ++guest.kept; throw 7; }
static int failed = fail();
ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = failed; }
)";
    CodeCache cache(options(Forms::image));
    ASSERT_TRUE(cache.add(arriving(*build("throws.cpp", kThrows), {Forms::image}), false));
    EXPECT_NE(outcome(cache, *cache.find("throws:go")).find("let an exception out"), std::string::npos);
    EXPECT_EQ(noted, std::vector<long>{41});
}

// Not the package's own either.
TEST_F(CompilingTest, ThreadLocalsOfOthersThatConstructorsReferToStay) {
    constexpr const char* kTable = "extern \"C\" long *slot() { static thread_local long x[64] = {41}; return x; }";
    constexpr const char* kRefers =
        "#include <cerrno>\nextern \"C\" long *slot(); static long *p = slot(); static int *e = &errno;\n"
        "ROVE_ENTRY void go(rove_here *, const void *to, size_t) { *e = 0; *(long *)to = ++p[0] + *e; }";
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        CodeCache cache(options(form));
        const auto table = cache.add(arriving(*build("table.cpp", kTable, true), {form}), false);
        ASSERT_TRUE(table && cache.load_interface(*table));
        ASSERT_TRUE(cache.add(arriving(*build("refers.cpp", kRefers), {form}), false));
        for (long value = 42; value < 45; ++value) {
            EXPECT_EQ(call(cache, *cache.find("refers:go")), value);
            const std::vector<std::vector<char>> others(100, std::vector<char>(512, 'x'));
        }
    }
}

// As natively, where there is one list for all: what was made later may refer to what was made before it, and to other thread-locals.
TEST_F(CompilingTest, ThreadLocalsOfSeveralPackagesEndInTheirThreadAndTheLastFirst) {
    constexpr const char* kGuest = R"(
#include <unistd.h>
extern "C" void note(long);
static thread_local long of_thread;
struct Told { ~Told() { note(of_thread == gettid() ? NUMBER : -NUMBER); } };
static thread_local Told told;
static Told& used = (of_thread = gettid(), told);
ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = &used == nullptr; }
)";
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        noted.clear();
        std::vector<long> wanted;
        {
            CodeCache cache(options(form));
            for (long number = 1; number <= 12; ++number) {
                std::string text = kGuest;
                for (std::size_t at = text.find("NUMBER"); at != std::string::npos; at = text.find("NUMBER"))
                    text.replace(at, 6, std::to_string(number));
                const std::string name = "guest" + std::to_string(number);
                ASSERT_TRUE(cache.add(arriving(*build(name + ".cpp", text), {form}), false));
                EXPECT_EQ(call(cache, *cache.find(name + ":go")), 0);
                wanted.insert(wanted.begin(), number);
            }
        }
        EXPECT_EQ(noted, wanted);
    }
}

// Natively they run when all statics have been destroyed; and here also where the code may have been evicted before.
TEST_F(CompilingTest, FunctionsThatAreMarkedAsDestructorsRunLast) {
    constexpr const char* kCpp = R"(
extern "C" void note(long);
struct Static { long id = 1; ~Static() { note(id); } };
static Static first;
__attribute__((destructor)) static void last() { note(2); }
__attribute__((destructor(200))) static void later_still() { note(3); }
ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = first.id; }
)";
    constexpr const char* kC =
        "void note(long); __attribute__((destructor)) static void last(void) { note(4); }\n"
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = 1; (void)h, (void)n; }";
    for (const Forms forms : {Forms::image, Forms::bitcode, Forms::both}) {
        for (const auto& [name, text, wanted] :
             {std::tuple{"ends.cpp", kCpp, std::vector<long>{1, 2, 3}}, {"ends.c", kC, std::vector<long>{4}}}) {
            noted.clear();
            {
                CodeCache cache(options(forms, 1));
                ASSERT_TRUE(cache.add(build(name, text), false));
                EXPECT_EQ(call(cache, *cache.find("ends:go")), 1);
                cache.wait_for_tiers();
                ASSERT_TRUE(cache.add(build("other.c", kCounter), false));
                EXPECT_EQ(call(cache, *cache.find("other:count")), 41);
            }
            EXPECT_EQ(noted, wanted) << name << " as " << static_cast<int>(forms);
        }
    }
}

// As a function that is both has: for its end it is registered.
TEST_F(CompilingTest, ConstructorsWhoseAddressesAreTakenRunInEachForm) {
    constexpr const char* kTaken =
        "void note(long); static void (*volatile keep)(void);\n"
        "__attribute__((constructor(200), destructor)) static void both(void) { note(5); }\n"
        "__attribute__((constructor(300))) static void kept(void) { keep = kept; note(6); }\n"
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = keep != 0; (void)h, (void)n; }";
    for (const Forms forms : {Forms::image, Forms::bitcode, Forms::both}) {
        noted.clear();
        {
            CodeCache cache(options(forms));
            ASSERT_TRUE(cache.add(build("taken.c", kTaken), false));
            EXPECT_EQ(call(cache, *cache.find("taken:go")), 1);
            cache.wait_for_tiers();
            EXPECT_EQ(call(cache, *cache.find("taken:go")), 1);
            EXPECT_EQ(noted, (std::vector<long>{5, 6})) << static_cast<int>(forms);
        }
        EXPECT_EQ(noted, (std::vector<long>{5, 6, 5})) << static_cast<int>(forms);
    }
}

// C's library calls them with a program's arguments and its environment. A node is no program of theirs.
TEST_F(CompilingTest, ConstructorsAreGivenNoArguments) {
    constexpr const char* kLooks =
        "void note(long); static void (*volatile keep)(int, char **, char **);\n"
        "__attribute__((constructor(200))) static void looks(int c, char **v, char **e) { note(c || v || e); }\n"
        "__attribute__((constructor(300))) static void kept(int c, char **v, char **e) { keep = kept; note(c || v || "
        "e); }\n"
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = keep != 0; (void)h, (void)n; }";
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        noted.clear();
        CodeCache cache(options(forms));
        ASSERT_TRUE(cache.add(build("looks.c", kLooks), false));
        EXPECT_EQ(call(cache, *cache.find("looks:go")), 1);
        EXPECT_EQ(noted, (std::vector<long>{0, 0})) << static_cast<int>(forms);
    }
}

std::ptrdiff_t threads() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

std::atomic<bool> thread_may_end{false};
std::atomic<long> told_by_thread{0};
extern "C" int may_end() {
    return thread_may_end ? 1 : 0;
}
extern "C" void tell(long value) {
    told_by_thread = value;
}

// A pool that is never ended, say. Its code stays, as that of pinned packages does.
TEST_F(CompilingTest, ThreadsOfAPackageWhoseConstructorFailsGoOn) {
    constexpr const char* kStarts = R"(
#include <pthread.h>
#include <unistd.h>
extern "C" int may_end();
extern "C" void tell(long);
static long heard = 1;
static void* waits(void*) { while (!may_end()) usleep(1000); tell(heard); return nullptr; }
__attribute__((constructor(200))) static void start() {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, waits, nullptr) == 0) pthread_detach(thread);
}
__attribute__((constructor(300))) static void fail() { if (heard == 1) throw 7; }
ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = heard; }
)";
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        thread_may_end = false;
        told_by_thread = 0;
        CodeOptions given = options(form);
        given.host_symbols.push_back({"may_end", reinterpret_cast<void*>(&may_end)});
        given.host_symbols.push_back({"tell", reinterpret_cast<void*>(&tell)});
        CodeCache cache(given);
        ASSERT_TRUE(cache.add(arriving(*build("starts.cpp", kStarts), {form}), false));
        Function* function = cache.find("starts:go");
        const std::string error = outcome(cache, *function);
        EXPECT_NE(error.find("let an exception out"), std::string::npos) << error;
        EXPECT_EQ(outcome(cache, *function), error);
        EXPECT_GT(cache.usage().pinned_bytes, 0U) << "what stays is counted";
        const std::ptrdiff_t with_thread = threads();
        thread_may_end = true;
        const auto until = std::chrono::steady_clock::now() + kPatience;
        while (threads() == with_thread && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
        EXPECT_EQ(told_by_thread, 1) << wire::to_string(form);
    }
}

long* kept_by_host = nullptr;
extern "C" void keep(long* address) {
    kept_by_host = address;
}

// Nothing shows that others have the address of such a static (setvbuf, putenv).
TEST_F(CompilingTest, StaticsThatOthersHaveStayWhereAConstructorFails) {
    constexpr const char* kGives = R"(
extern "C" void keep(long*);
static long given[512] = {41};
__attribute__((constructor(200))) static void give() { keep(given); }
__attribute__((constructor(300))) static void fail() { if (given[0] == 41) throw 7; }
ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = given[0]; }
)";
    constexpr const char* kOther =
        "static long zeros[512]; ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = ++zeros[0]; }";
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        kept_by_host = nullptr;
        CodeOptions given = options(form);
        given.host_symbols.push_back({"keep", reinterpret_cast<void*>(&keep)});
        CodeCache cache(given);
        const auto package = build("gives.cpp", kGives);
        ASSERT_FALSE(package->manifest().pinned);
        ASSERT_TRUE(cache.add(arriving(*package, {form}), false));
        EXPECT_NE(outcome(cache, *cache.find("gives:go")).find("let an exception out"), std::string::npos);
        ASSERT_NE(kept_by_host, nullptr);
        for (int i = 0; i < 8; ++i) {
            const std::string name = "other" + std::to_string(i);
            ASSERT_TRUE(cache.add(arriving(*build(name + ".cpp", kOther), {form}), false));
            EXPECT_EQ(call(cache, *cache.find(name + ":go")), 1);
        }
        EXPECT_EQ(*kept_by_host, 41) << wire::to_string(form);
        *kept_by_host = 1;
    }
}

// They may count on what the constructors make.
TEST_F(CompilingTest, FunctionsForTheEndDoNotRunWhereAConstructorFails) {
    constexpr const char* kFails = R"(
#include <stdlib.h>
extern "C" void note(long);
static long* made;
struct Static { ~Static() { note(1); } };
__attribute__((init_priority(200))) static Static first;
__attribute__((constructor)) static void make() { if (made == nullptr) throw 7; }
static void at_exit() { note(*made); }
__attribute__((constructor(101))) static void begin() { atexit(at_exit); }
__attribute__((destructor)) static void end() { note(*made); }
ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = 1; }
)";
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        noted.clear();
        CodeCache cache(options(form));
        ASSERT_TRUE(cache.add(arriving(*build("fails.cpp", kFails), {form}), false));
        EXPECT_NE(outcome(cache, *cache.find("fails:go")).find("let an exception out"), std::string::npos);
        EXPECT_EQ(noted, std::vector<long>{1}) << "what was constructed";
    }
}

TEST_F(CompilingTest, ConstructorsOfAllPackagesRunInOneThread) {
    constexpr const char* kRefers =
        "#include <unistd.h>\nstatic thread_local long value = 40; static long& kept = value; static long thread = "
        "gettid();\n"
        "ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = thread * 1000 + ++kept; }";
    CodeCache cache(options(Forms::image));
    long first = 0;
    std::ptrdiff_t before = 0;
    for (int i = 0; i < 70; ++i) {
        const std::string name = "stays" + std::to_string(i);
        ASSERT_TRUE(cache.add(arriving(*build(name + ".cpp", kRefers), {Forms::image}), false));
        const long value = call(cache, *cache.find(name + ":go"));
        EXPECT_EQ(value % 1000, 41) << "each has variables of its own";
        if (i == 0) first = value;
        if (i == 1) before = threads();
        EXPECT_EQ(value, first);
    }
    EXPECT_LE(threads(), before + 20) << "of 70; workers may come and go";
}

// Where others' thread-local objects are in a thread that a constructor ends, that thread stays, and does no more.
TEST_F(CompilingTest, AThreadThatAConstructorEndsKeepsItsThreadLocalsForOthers) {
    constexpr const char* kRefers =
        "static thread_local long value = 40; static long& kept = value;\n"
        "ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = ++kept; }";
    constexpr const char* kEnds =
        "#include <pthread.h>\nstatic int end() { pthread_exit(nullptr); }\nstatic int s = end();\n"
        "ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = s; }";
    CodeCache cache(options(Forms::image));
    const auto add = [&](const std::string& name, const char* text) {
        const auto package = build(name + ".cpp", text);
        return cache.add(arriving(*package, {Forms::image}), false).has_value();
    };
    std::string last;
    for (std::size_t i = 0; i <= kConstructorThreadsMax; ++i) {
        const std::string refers = "refers" + std::to_string(i), ends = "ends" + std::to_string(i);
        ASSERT_TRUE(add(refers, kRefers) && add(ends, kEnds));
        last = outcome(cache, *cache.find(refers + ":go"));
        if (last != kEntered) break;
        EXPECT_NE(outcome(cache, *cache.find(ends + ":go")).find("ended its thread"), std::string::npos);
    }
    EXPECT_NE(last.find("ended, or changed for good, 32 threads of node 7"), std::string::npos) << last;
    for (const long value : {41, 42}) EXPECT_EQ(call(cache, *cache.find("refers0:go")), value);
}

TEST_F(CompilingTest, ACacheMayEndWhileConstructorsWithThreadLocalsRun) {
    constexpr const char* kWaits = R"(
extern "C" { void note(long); int wait_for_word(); }
struct Told { long id = 1; ~Told() { note(id); } };
static thread_local Told of_thread;
static Told& used = of_thread;
static int s = wait_for_word();
ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = s + used.id; }
)";
    std::thread([] {}).join();  // ThreadSanitizer has one of its own from the first one on
    const std::ptrdiff_t before = threads();
    {
        CodeCache cache(waiting_options(Forms::image));
        ASSERT_TRUE(cache.add(arriving(*build("waits.cpp", kWaits), {Forms::image}), false));
        (void)cache.enter(*cache.find("waits:go"));
        ASSERT_TRUE(have_begun(1));
    }
    constructors->word.set_value();
    for (const auto until = std::chrono::steady_clock::now() + kPatience; threads() > before;) {
        ASSERT_LT(std::chrono::steady_clock::now(), until);
        std::this_thread::yield();
    }
    EXPECT_TRUE(noted.empty()) << "its code has gone";
}

// Code in C says nothing about how to leave it, so that no handler of the node's is told of a thread's end.
TEST_F(CompilingTest, AConstructorThatEndsItsThreadFailsItsPackageAlone) {
    constexpr const char* kEndsInC =
        "#include <pthread.h>\nstatic long x;\n"
        "__attribute__((constructor)) static void begin(void) { x = 1; pthread_exit(0); }\n"
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = x; (void)h, (void)n; }";
    constexpr const char* kEndsInCpp =
        "#include <pthread.h>\nstatic int end() { pthread_exit(nullptr); }\nstatic int s = end();\n"
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = s; (void)h, (void)n; }";
    constexpr const char* kDetaches =
        "#include <pthread.h>\n#include <unistd.h>\nstatic long x;\n"
        "__attribute__((constructor)) static void begin(void) {\n"
        "pthread_detach(pthread_self()); usleep(50000); x = 1; pthread_exit(0); }\n"
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = x; (void)h, (void)n; }";
    constexpr const char* kEndsByItself =
        "#include <sys/syscall.h>\n#include <unistd.h>\nstatic long x;\n"
        "__attribute__((constructor)) static void begin(void) { x = 1; syscall(SYS_exit, 0); }\n"
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = x; (void)h, (void)n; }";
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
    constexpr std::array kEnds{kEndsInC, kEndsInCpp, kDetaches, kEndsInC};  // what ends by itself is not seen to end
#else
    constexpr std::array kEnds{kEndsInC, kEndsInCpp, kDetaches, kEndsByItself};
#endif
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        CodeCache cache(options(form == Forms::image ? Forms::image : Forms::bitcode));
        for (std::size_t i = 0; i <= kConstructingMax; ++i) {  // none keeps a place
            const char* const source = kEnds[i % kEnds.size()];
            const std::string name = "ends" + std::to_string(i);
            const auto package = build(name + (source == kEndsInCpp ? ".cpp" : ".c"), source);
            ASSERT_TRUE(cache.add(arriving(*package, {form}), false));
            const std::string error = outcome(cache, *cache.find(name + ":go"));
            EXPECT_NE(error.find("a constructor of package " + name + " on node 7 ended its thread"), std::string::npos)
                << error;
        }
    }
}

// The child has that thread alone, and its end would be the program's: with its destructors, and what it has not written yet.
TEST_F(CompilingTest, AConstructorsChildThatReturnsEnds) {
    constexpr const char* kForks =
        "#include <sys/wait.h>\n#include <unistd.h>\nstatic int status = -1;\n"
        "static int forks() { pid_t child = fork(); if (child > 0) waitpid(child, &status, 0); return 0; }\n"
        "static int s = forks();\n"
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = status + s; (void)h, (void)n; }";
    CodeCache cache(options(Forms::image));
    ASSERT_TRUE(cache.add(arriving(*build("forks.cpp", kForks), {Forms::image}), false));
    EXPECT_EQ(call(cache, *cache.find("forks:go")), EXIT_FAILURE << 8);
}

// In C nothing unwinds it.
TEST_F(CompilingTest, AConstructorsChildThatEndsItsThreadEnds) {
    constexpr const char* kForks =
        "#include <pthread.h>\n#include <sys/wait.h>\n#include <unistd.h>\nstatic int status = -1;\n"
        "__attribute__((constructor)) static void forks(void) { pid_t child = fork();\n"
        "  if (child == 0) pthread_exit(0);\n  if (child > 0) waitpid(child, &status, 0); }\n"
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = status; (void)h, (void)n; }";
    CodeCache cache(options(Forms::image));
    ASSERT_TRUE(cache.add(arriving(*build("exits.c", kForks), {Forms::image}), false));
    EXPECT_EQ(call(cache, *cache.find("exits:go")), EXIT_FAILURE << 8);
}

TEST_F(CompilingTest, AConstructorMayThrowWhatHasNoWords) {
    constexpr const char* kWordless =
        "#include <exception>\nstruct wordless : std::exception {\n"
        "const char *what() const noexcept override { return nullptr; } };\n"
        "static int fail() { throw wordless(); }\nstatic int s = fail();\n"
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = s; (void)h, (void)n; }";
    CodeCache cache(options(Forms::image));
    ASSERT_TRUE(cache.add(arriving(*build("wordless.cpp", kWordless), {Forms::image}), false));
    const std::string error = outcome(cache, *cache.find("wordless:go"));
    EXPECT_NE(error.find("let an exception out: an exception without a message"), std::string::npos) << error;
}

}  // namespace
}  // namespace rove::code
