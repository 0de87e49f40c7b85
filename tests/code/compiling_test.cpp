// The threads of a cache, with a compiler that takes as long as the test wants; and which names an interface may take over.
#include <unistd.h>
#include <zstd.h>

#include <array>
#include <cstdlib>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cache_fixture.hpp"
#include "code/cache_state.hpp"
#include "package/digest.hpp"
#include "slow_engine.hpp"

namespace rove::code {
namespace {

using namespace std::chrono_literals;

// What the constructors of a package that came do: they tell that they have begun, and wait for the test's word.
struct Constructors {
    std::atomic<int> begun{0};
    std::promise<void> word;
    std::shared_future<void> said = word.get_future().share();
};
std::shared_ptr<Constructors> constructors;
extern "C" int wait_for_word() {
    const std::shared_ptr<Constructors> held = constructors;
    ++held->begun;
    held->said.wait();
    return 7;
}

constexpr const char* kConstructed =
    "extern \"C\" int wait_for_word(); static int s = wait_for_word(); ROVE_ENTRY void go(rove_here *h, const void *p, "
    "size_t n) { *(long *)p = s; (void)h, (void)n; }";

class CompilingTest : public CacheTest {
protected:
    [[nodiscard]] CodeOptions slow_options() {
        CodeOptions given = options();
        given.engine = [this]() -> Result<jit::Engine*> { return &engine_; };
        return given;
    }
    [[nodiscard]] bool has_begun() {
        return engine_.begun.get_future().wait_for(kPatience) == std::future_status::ready;
    }
    [[nodiscard]] static CodeOptions waiting_options(Forms forms) {
        constructors = std::make_shared<Constructors>();
        CodeOptions given = options(forms);
        given.host_symbols.push_back({"wait_for_word", reinterpret_cast<void*>(&wait_for_word)});
        return given;
    }
    [[nodiscard]] static bool have_begun(int count) {
        for (const auto until = std::chrono::steady_clock::now() + kPatience; constructors->begun < count;) {
            if (std::chrono::steady_clock::now() > until) return false;
            std::this_thread::yield();
        }
        return true;
    }
    struct Loading {
        std::promise<std::string> error;
        std::future<std::string> told = error.get_future();
        bool ended() { return told.wait_for(kPatience) == std::future_status::ready; }
        Status begin(CodeCache& cache, const std::shared_ptr<PackageStore>& package) {
            return cache.load_later(package, [this](const Result<LoadReport>& loaded) {
                error.set_value(loaded ? "" : loaded.error().message());
            });
        }
    };
    // Enters it until it can be entered or not, at most for kPatience.
    [[nodiscard]] static std::string outcome(CodeCache& cache, Function& function) {
        for (const auto until = std::chrono::steady_clock::now() + kPatience;
             std::chrono::steady_clock::now() < until;) {
            const auto entered = cache.enter(function);
            if (const auto* error = std::get_if<Error>(&entered)) return error->message();
            if (std::holds_alternative<Entered>(entered)) return "it can be entered";
            std::this_thread::yield();
        }
        return "it still waits";
    }
    static constexpr const char* kEntered = "it can be entered";
    SlowEngine engine_;
};

// A call waits for its package's bitcode where that has no image; nobody does where the image runs meanwhile.
TEST_F(CompilingTest, WhatCallsWaitForIsCompiledFirst) {
    CodeCache cache(slow_options());
    for (const char* name : {"first.c", "second.c", "third.c"}) {
        const auto package = arriving(*build(name, kCounter), {Forms::image, Forms::bitcode});
        ASSERT_TRUE(cache.add(package, false));
        EXPECT_EQ(call(cache, *cache.find(package->function_ids().front())), 41);
        if (name == std::string("first.c")) {
            ASSERT_TRUE(has_begun());
        }
    }
    const auto awaited = arriving(*build("awaited.c", kCounter), {Forms::bitcode});
    ASSERT_TRUE(cache.add(awaited, false));
    EXPECT_TRUE(std::holds_alternative<Awaited>(cache.enter(*cache.find(awaited->function_ids().front()))));
    engine_.go_on.set_value();
    cache.wait_for_tiers();
    ASSERT_EQ(engine_.order.size(), 4U);
    EXPECT_NE(engine_.order[1].find("awaited"), std::string::npos) << engine_.order[1];
}

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

// It is for the calls that wait: who comes later finds out anew.
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
            EXPECT_EQ(cache.usage().static_bytes, 0U);
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

TEST_F(CompilingTest, ThreadsOfConstructorsThatStayAreBounded) {
    constexpr const char* kRefers =
        "static thread_local long value = 40; static long& kept = value;\n"
        "ROVE_ENTRY void go(rove_here*, const void* p, size_t) { *(long*)p = ++kept; }";
    CodeCache cache(options(Forms::image));
    std::string name;
    for (std::size_t i = 0; i <= kStayingMax; ++i) {
        name = "stays" + std::to_string(i);
        ASSERT_TRUE(cache.add(arriving(*build(name + ".cpp", kRefers), {Forms::image}), false));
        if (i == kStayingMax) break;
        EXPECT_EQ(call(cache, *cache.find(name + ":go")), 41);
    }
    const std::string refused = outcome(cache, *cache.find(name + ":go"));
    EXPECT_NE(refused.find("the threads of 64 such packages stay on node 7 already"), std::string::npos) << refused;
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
    EXPECT_NE(error.find("let an exception out: an exception without words"), std::string::npos) << error;
}

TEST_F(CompilingTest, WhatDoesNotCompileIsNotCompiledForEachInterface) {
    engine_.go_on.set_value();
    CodeCache cache(slow_options());
    ASSERT_TRUE(cache.add(arriving(*build("slow.c", kCounter), {Forms::bitcode}), false));
    Function* slow = cache.find("slow:count");
    const std::string error = outcome(cache, *slow);
    EXPECT_NE(error.find("was not compiled"), std::string::npos) << error;
    const auto shelf =
        cache.add(arriving(*build("shelf.c", "int shelf(void) { return 8; }", true), {Forms::image}), false);
    ASSERT_TRUE(shelf && cache.load_interface(*shelf));
    EXPECT_EQ(outcome(cache, *slow), error);
    EXPECT_EQ(engine_.compiles, 1);
}

// The same image behind many frames of zstd's that hold nothing, each of which is read nevertheless.
std::shared_ptr<PackageStore> with_empty_frames(const PackageStore& whole) {
    const std::size_t index = *whole.slice_index(host_triple(), Forms::image);
    const ByteBuffer raw = *whole.raw_slice(index);
    const auto append = [](ByteBuffer& to, Bytes content) {
        ByteBuffer frame(ZSTD_compressBound(content.size()));
        frame.resize(ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), 1));
        to.insert(to.end(), frame.begin(), frame.end());
    };
    ByteBuffer stored;
    while (stored.size() <= kQuickImageBytesMax) append(stored, {});
    append(stored, raw);
    wire::Manifest manifest = whole.manifest();
    manifest.name = "padded";
    manifest.slices = {{std::string(host_triple()), Forms::image, wire::Compression::zstd,
                        static_cast<std::uint32_t>(raw.size()), static_cast<std::uint32_t>(stored.size()),
                        hash_of_slice(stored)}};
    return PackageStore::parse(PackageStore::serialize(manifest, {stored})).value();
}

// What a peer chose to be large is not decompressed where others wait.
TEST_F(CompilingTest, LargeImagesAreNotLoadedInPlace) {
    const std::string go =
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = t[n] + 7; (void)h; }";
    CodeCache cache(options(Forms::image));
    const auto first_of = [&](const std::shared_ptr<PackageStore>& package) {
        EXPECT_TRUE(cache.add(arriving(*package, {Forms::image}), false));
        Function* function = cache.find(package->function_ids().front());
        const bool in_place = std::holds_alternative<Entered>(cache.enter(*function));
        EXPECT_EQ(call(cache, *function), 7);
        return in_place;
    };
    const auto small = build("small.c", "static long t[16] = {0, 1};" + go);
    EXPECT_TRUE(first_of(small));
    EXPECT_FALSE(first_of(build("large.c", "long t[16384] = {0, 1};" + go)));
    EXPECT_FALSE(first_of(with_empty_frames(*small)));
}

// Nor does LLVM, which may take seconds for what a peer sent: neither calls nor loads of what needs no compiler.
TEST_F(CompilingTest, ACompileKeepsNoImageFromRunning) {
    for (const bool loaded_ahead : {false, true}) {
        SlowEngine engine;
        CodeOptions given = waiting_options(Forms::both);
        given.engine = [&engine]() -> Result<jit::Engine*> { return &engine; };
        CodeCache cache(given);
        const auto take = [&](const std::string& file, const std::string& text, Forms form) {
            const auto package = arriving(*build(file, text), {form});
            EXPECT_TRUE(cache.add(package, false));
            return package;
        };
        const auto slow = take("slow.c", kCounter, Forms::bitcode);
        Loading bitcode, next_bitcode, image;
        if (loaded_ahead)
            ASSERT_TRUE(bitcode.begin(cache, slow));
        else
            ASSERT_TRUE(std::holds_alternative<Awaited>(cache.enter(*cache.find("slow:count"))));
        ASSERT_EQ(engine.begun.get_future().wait_for(kPatience), std::future_status::ready);
        ASSERT_TRUE(next_bitcode.begin(cache, take("next.c", kCounter, Forms::bitcode)));
        ASSERT_TRUE(image.begin(cache, take("ahead.c", kCounter, Forms::image)));
        EXPECT_TRUE(image.ended()) << "a load waits for a compile of another package";
        take("large.c",
             "long t[16384] = {0, 1}; ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = t[n]; "
             "(void)h; }",
             Forms::image);
        EXPECT_EQ(outcome(cache, *cache.find("large:go")), kEntered);
        constructors->word.set_value();
        take("built.cpp", kConstructed, Forms::image);
        EXPECT_EQ(outcome(cache, *cache.find("built:go")), kEntered);
        engine.go_on.set_value();
        EXPECT_TRUE(next_bitcode.ended());
        if (loaded_ahead) EXPECT_TRUE(bitcode.ended());
    }
}

TEST_F(CompilingTest, LoadingOneKeepsNoOtherFromRunning) {
    CodeCache cache(slow_options());
    const auto slow = cache.add(arriving(*build("slow.c", kCounter), {Forms::bitcode}), false);
    ASSERT_TRUE(slow);
    std::promise<std::string> done;
    ASSERT_TRUE(cache.load_later(
        *slow, [&done](const Result<LoadReport>& loaded) { done.set_value(loaded ? "" : loaded.error().message()); }));
    ASSERT_TRUE(has_begun());
    ASSERT_TRUE(cache.add(arriving(*build("quick.c", kCounter), {Forms::image}), false));
    EXPECT_EQ(call(cache, *cache.find("quick:count")), 41);
    engine_.go_on.set_value();
    std::future<std::string> answer = done.get_future();
    ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
    EXPECT_NE(answer.get().find("was not compiled"), std::string::npos);
}

TEST_F(CompilingTest, MoreLoadsThanMayWaitAreRefused) {
    CodeCache cache(slow_options());
    const auto add = [&](std::size_t i) {
        return cache.add(arriving(*build("slow" + std::to_string(i) + ".c", kCounter), {Forms::bitcode}), false);
    };
    std::size_t packages = 0;
    for (std::size_t waiting = 0; waiting < CodeCache::kLoadsMax; ++packages) {
        const auto slow = add(packages);
        ASSERT_TRUE(slow);
        for (std::size_t i = 0; i < CodeCache::kLoadsOfPackageMax && waiting < CodeCache::kLoadsMax; ++i, ++waiting)
            ASSERT_TRUE(cache.load_later(*slow, [](const auto&) {}));
        if (packages == 0) ASSERT_TRUE(has_begun());
    }
    const auto slow = add(packages);
    ASSERT_TRUE(slow);
    const Status refused = cache.load_later(*slow, [](const auto&) {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
    engine_.go_on.set_value();
}

TEST_F(CompilingTest, ANodeHasAShareOfTheLoads) {
    CodeCache cache(slow_options());
    const auto load = [&](std::size_t package, NodeId asker) {
        const auto slow =
            cache.add(arriving(*build("slow" + std::to_string(package) + ".c", kCounter), {Forms::bitcode}), false);
        return slow ? cache.load_later(*slow, [](const auto&) {}, asker) : Status(tl::unexpected<Error>(slow.error()));
    };
    for (std::size_t i = 0; i < CodeCache::kLoadsOfNodeMax; ++i) {
        ASSERT_TRUE(load(i / CodeCache::kLoadsOfPackageMax, 5));
        if (i == 0) ASSERT_TRUE(has_begun());
    }
    const Status refused = load(100, 5);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
    EXPECT_NE(refused.error().message().find("that one node wants loaded"), std::string::npos);
    EXPECT_TRUE(load(100, 6));
    engine_.go_on.set_value();
}

// LLVM cannot be interrupted. In a process of its own, which ends while the compile goes on.
TEST_F(CompilingTest, ACacheEndsDuringACompile) {
    EXPECT_EXIT(
        {
            {
                CodeCache cache(slow_options());
                const auto slow = cache.add(arriving(*build("slow.c", kCounter), {Forms::bitcode}), false);
                if (!slow || !cache.load_later(*slow, [](const auto&) {}) || !has_begun()) _exit(1);
            }
            std::exit(7);  // NOLINT(concurrency-mt-unsafe)
        },
        testing::ExitedWithCode(7), "");
}

TEST_F(CompilingTest, WhatIsQueuedAtTheEndIsNotCompiled) {
    std::promise<void> called_back;
    {
        CodeCache cache(slow_options());
        const auto slow = cache.add(arriving(*build("slow.c", kCounter), {Forms::bitcode}), false);
        const auto next = cache.add(arriving(*build("next.c", kCounter), {Forms::bitcode}), false);
        ASSERT_TRUE(slow && next);
        ASSERT_TRUE(cache.load_later(*slow, [&](const auto&) { called_back.set_value(); }));
        ASSERT_TRUE(cache.load_later(*next, [&](const auto&) { called_back.set_value(); }));
        ASSERT_TRUE(has_begun());
        std::thread later([this] {
            std::this_thread::sleep_for(100ms);
            engine_.go_on.set_value();
        });
        cache.stop();
        later.join();
    }
    EXPECT_EQ(called_back.get_future().wait_for(0s), std::future_status::timeout);
}

TEST_F(CompilingTest, AnInterfaceOfAPeerDoesNotTakeTheNodesOwnNames) {
    const auto interface = build("names.c", "int getppid(void) { return 7; } int shelf(void) { return 8; }", true);
    const auto user =
        build("user.c",
              "int getppid(void); int shelf(void); ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { "
              "*(long *)p = getppid() * 100L + shelf(); (void)h, (void)n; }");
    for (const bool preloaded : {false, true}) {
        CodeCache cache(options(Forms::image));
        const auto names = cache.add(arriving(*interface, {Forms::image}), preloaded);
        ASSERT_TRUE(names);
        const auto linked = cache.load_interface(*names);
        ASSERT_TRUE(linked) << linked.error().message();
        EXPECT_EQ(linked->kept, preloaded ? std::vector<std::string>{} : std::vector<std::string>{"getppid"});
        ASSERT_TRUE(cache.add(arriving(*user, {Forms::image}), false));
        EXPECT_EQ(call(cache, *cache.find("user:go")), (preloaded ? 7 : getppid()) * 100L + 8);
    }
}

}  // namespace
}  // namespace rove::code
