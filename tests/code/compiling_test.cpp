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

#include "code/cache_state.hpp"
#include "compiling_fixture.hpp"
#include "package/digest.hpp"

namespace rove::code {
namespace {

using namespace std::chrono_literals;

// LLVM takes its time for that, so nobody waits for it who needs the cache.
TEST_F(CompilingTest, WhatEvictedModulesHadIsFreedWithTheLockFree) {
    constexpr const char* kAnswers =
        "ROVE_ENTRY void answer(rove_here *h, const void *p, size_t n) { *(long *)p = 7; }";
    GivenCompiler compiler;
    compiler.compiles = [](const bitcode::CompileRequest& request) { return (*bitcode::compiler())->compile(request); };
    CodeOptions given = options(Forms::bitcode, 1);  // code that is called evicts the code before it
    given.compiler = [&compiler] { return &compiler; };
    std::atomic<int> frees = 0;
    {
        CodeCache cache(given);
        compiler.frees_modules = [&] {
            EXPECT_EQ(cache.usage().evictions, 1U);
            ++frees;
        };
        ASSERT_TRUE(cache.add(arriving(*build("one.c", kAnswers), {Forms::bitcode}), false));
        EXPECT_EQ(call(cache, *cache.find("one:answer")), 7);
        EXPECT_EQ(frees, 0);
        ASSERT_TRUE(cache.add(arriving(*build("two.c", kAnswers), {Forms::bitcode}), false));
        cache.wait_for_tiers();
        EXPECT_EQ(frees, 1);
        compiler.frees_modules = [&frees] { ++frees; };
    }
    EXPECT_EQ(frees, 2) << "and when the cache ends";
}

// A call waits for its package's bitcode where that has no image; nobody does where the image runs until then.
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
    compiler_.go_on.set_value();
    cache.wait_for_tiers();
    ASSERT_EQ(compiler_.order.size(), 4U);
    EXPECT_NE(compiler_.order[1].find("awaited"), std::string::npos) << compiler_.order[1];
}

// Not in that of who sent it, or asked for it, before: node 1 does both, with a package that node 2 calls, or asks for.
TEST_F(CompilingTest, APackageIsCompiledInTheTurnOfWhoWaitsForIt) {
    for (const bool loaded_ahead : {false, true}) {
        SlowCompiler compiler;
        CodeOptions given = options(Forms::bitcode);
        given.compiler = [&compiler]() -> Result<bitcode::Compiler*> { return &compiler; };
        CodeCache cache(given);
        const auto ask = [&](const std::string& name, NodeId asker) {
            EXPECT_TRUE(cache.add(arriving(*build(name + ".c", kCounter), {Forms::bitcode}), false, 1));
            EXPECT_TRUE(std::holds_alternative<Awaited>(cache.enter(*cache.find(name + ":count"), asker)));
        };
        ask("first", 1);
        ASSERT_EQ(compiler.begun.get_future().wait_for(kPatience), std::future_status::ready);
        for (const char* name : {"second", "third", "fourth", "called"}) ask(name, 1);
        if (loaded_ahead)
            ASSERT_TRUE(cache.load_later(cache.package_of(*cache.find("called:count")), [](const auto&) {}, 2));
        else
            ask("called", 2);
        ask("last", 2);
        compiler.go_on.set_value();
        cache.wait_for_tiers();
        ASSERT_EQ(compiler.order.size(), 6U);
        EXPECT_NE(compiler.order[1].find("called"), std::string::npos) << compiler.order[1];
        EXPECT_NE(compiler.order[5].find("fourth"), std::string::npos) << compiler.order[5];
    }
}

TEST_F(CompilingTest, WhatDoesNotCompileIsNotCompiledForEachInterface) {
    compiler_.go_on.set_value();
    CodeCache cache(slow_options());
    ASSERT_TRUE(cache.add(arriving(*build("slow.c", kCounter), {Forms::bitcode}), false));
    Function* slow = cache.find("slow:count");
    const std::string error = outcome(cache, *slow);
    EXPECT_NE(error.find("was not compiled"), std::string::npos) << error;
    const auto shelf =
        cache.add(arriving(*build("shelf.c", "int shelf(void) { return 8; }", true), {Forms::image}), false);
    ASSERT_TRUE(shelf && cache.load_interface(*shelf));
    EXPECT_EQ(outcome(cache, *slow), error);
    EXPECT_EQ(compiler_.compiles, 1);
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
        SlowCompiler compiler;
        CodeOptions given = waiting_options(Forms::both);
        given.compiler = [&compiler]() -> Result<bitcode::Compiler*> { return &compiler; };
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
        ASSERT_EQ(compiler.begun.get_future().wait_for(kPatience), std::future_status::ready);
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
        compiler.go_on.set_value();
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
    compiler_.go_on.set_value();
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
    compiler_.go_on.set_value();
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
    compiler_.go_on.set_value();
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
            compiler_.go_on.set_value();
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
