// Packages that make way for new ones, and those that stay.
#include "cache_fixture.hpp"
#include "code/package_code.hpp"
#include "slow_compiler.hpp"

namespace rove::code {
namespace {

class MakingWay : public CacheTest {};

// A node whose functions were all called once takes new ones: those that idle make way, with their code.
TEST_F(MakingWay, WhatIdlesMakesWayForWhatIsNew) {
    CodeOptions given = options(Forms::image);
    given.packages_max = 5;
    CodeCache cache(given);
    for (int i = 0; i < 30; ++i) {
        const auto package = build("idle" + std::to_string(i) + ".c", entry("go", std::to_string(i)));
        ASSERT_TRUE(cache.add(package, false)) << i;
        ASSERT_EQ(call(cache, *cache.find("idle" + std::to_string(i) + ":go")), i);
    }
    EXPECT_NE(cache.find("idle29:go"), nullptr);
    EXPECT_EQ(cache.find("idle0:go"), nullptr);
}

// While LLVM is busy with one package the bitcode of all others waits, and their images run: they idle, too.
TEST_F(MakingWay, WhatWaitsForTheCompilerMakesWayToo) {
    SlowCompiler compiler;
    CodeOptions given = options(Forms::both);
    given.compiler = [&compiler]() -> Result<bitcode::Compiler*> { return &compiler; };
    given.packages_max = 5;
    {
        CodeCache cache(given);
        for (int i = 0; i < 30; ++i) {
            const auto package = build("queued" + std::to_string(i) + ".c", entry("go", std::to_string(i)));
            ASSERT_TRUE(cache.add(package, false)) << i;
            ASSERT_EQ(call(cache, *cache.find("queued" + std::to_string(i) + ":go")), i);
            if (i == 0) ASSERT_EQ(compiler.begun.get_future().wait_for(kPatience), std::future_status::ready);
        }
        EXPECT_NE(cache.find("queued0:go"), nullptr) << "it is being compiled";
        EXPECT_EQ(cache.find("queued1:go"), nullptr);
        EXPECT_EQ(compiler.compiles, 1);
        compiler.go_on.set_value();
        cache.wait_for_tiers();
    }
    EXPECT_LE(compiler.compiles, 5) << "what has gone was compiled";
}

// Calls of what the compiler has not come to are over after a while, or their callers have gone: then it is bytes like any others.
TEST_F(MakingWay, WhatNobodyWaitsForAnyMoreLeavesTheCompilersQueue) {
    SlowCompiler compiler;
    CodeOptions given = options(Forms::bitcode);
    given.compiler = [&compiler]() -> Result<bitcode::Compiler*> { return &compiler; };
    given.code_bytes_max = 1;
    {
        CodeCache cache(given);
        const auto ask = [&](const std::string& name) {
            ASSERT_TRUE(cache.add(build(name + ".c", entry("go", "1")), false));
            EXPECT_TRUE(std::holds_alternative<Awaited>(cache.enter(*cache.find(name + ":go")))) << name;
        };
        ask("compiled");
        ASSERT_EQ(compiler.begun.get_future().wait_for(kPatience), std::future_status::ready);
        for (int i = 0; i < 4; ++i) ask("left" + std::to_string(i));
        for (int i = 0; i < 4; ++i) {
            std::atomic<std::int64_t>& until = cache.find("left" + std::to_string(i) + ":go")->package->awaited_until;
            EXPECT_GT(until, Clock::now().time_since_epoch().count());
            EXPECT_LE(until, (Clock::now() + kAwaitedMax).time_since_epoch().count());
            until = 1;  // long ago
        }
        ask("late");
        compiler.go_on.set_value();
        cache.wait_for_tiers();
    }
    EXPECT_EQ(compiler.order, (std::vector<std::string>{"compiled:go", "late:go"}));
}

// What was to stay, and found no place for that, has none as a call that waits either.
TEST_F(MakingWay, WhatWasRefusedAPlaceToStayMakesWay) {
    CodeOptions given = options(Forms::image);
    given.packages_max = 4;
    CodeCache cache(given);
    const auto large = [this](int i) {
        return build("large" + std::to_string(i) + ".c",
                     "long kept[16384] = {[0 ... 16383] = 7};" + entry("go", "++kept[n % 16384]"));
    };
    for (int i = 0; i < 6; ++i) {
        ASSERT_TRUE(cache.add(large(i), false)) << i;
        Function& go = *cache.find("large" + std::to_string(i) + ":go");
        if (i < 2) {
            EXPECT_EQ(call(cache, go), 8);
            continue;
        }
        EXPECT_EQ(error_of(cache, go), "") << "a worker has it";
        cache.wait_for_tiers();
        EXPECT_NE(error_of(cache, go).find("is to stay for as long as node 7 runs"), std::string::npos);
    }
    ASSERT_TRUE(cache.add(build("plain.c", entry("go", "3")), false));
    EXPECT_EQ(call(cache, *cache.find("plain:go")), 3);
}

// A worker that finds a place for what is to stay takes the statics of what was loaded and never called. It forgets nothing: the leader
// may be about to call it.
TEST_F(MakingWay, WhatWasLoadedAndNotCalledIsKnownStill) {
    CodeOptions given = options(Forms::image);
    given.packages_max = 4;
    CodeCache cache(given);
    const auto with_static = [this](const std::string& name) {
        return build(name + ".c", "static long kept = 1;" + entry("go", "++kept"));
    };
    const auto load = [&cache](const std::shared_ptr<PackageStore>& package) {
        std::promise<bool> done;
        ASSERT_TRUE(cache.load_later(
            package, [&done](const Result<LoadReport>& loaded) { done.set_value(loaded.has_value()); }));
        auto ended = done.get_future();
        ASSERT_EQ(ended.wait_for(kPatience), std::future_status::ready);
        EXPECT_TRUE(ended.get());
    };
    const auto whole = with_static("first");
    for (const auto& package : {arriving(*whole, {Forms::image}), with_static("second"), with_static("third")}) {
        ASSERT_TRUE(cache.add(package, false));
        load(package);
    }
    Function* const first = cache.find("first:go");
    ASSERT_NE(first, nullptr) << "forgotten by a worker";
    EXPECT_EQ(cache.by_handle(first->handle), first);
    ASSERT_TRUE(cache.add(arriving(*whole, {Forms::image}), false));
    EXPECT_EQ(call(cache, *first), 2) << "with statics of its own again";
    EXPECT_EQ(call(cache, *first), 3);
}

// Statics and interfaces stay. They leave half of all places to others.
TEST_F(MakingWay, WhatStaysLeavesHalfToOthers) {
    CodeOptions given = options(Forms::image);
    given.packages_max = 8;
    CodeCache cache(given);
    for (int i = 0; i < 2; ++i) {
        const std::string name = "given" + std::to_string(i);
        const auto interface = build(name + ".c", "long " + name + "(long n) { return n; }", true);
        ASSERT_TRUE(cache.add(interface, false));
        ASSERT_TRUE(cache.load_interface(interface));
    }
    std::string error;
    for (int i = 0; i < 3; ++i) {
        const std::string name = "counts" + std::to_string(i);
        ASSERT_TRUE(cache.add(build(name + ".c", "static long kept;" + entry("go", "++kept")), false));
        Function& go = *cache.find(name + ":go");
        if (i < 2)
            EXPECT_EQ(call(cache, go), 1);
        else
            error = error_of(cache, go);
    }
    EXPECT_NE(error.find("package counts2 is to stay for as long as node 7 runs (it has statics or constructors, is "
                         "pinned, or is an "
                         "interface), and 4 packages"),
              std::string::npos)
        << error;
    const auto third = build("third.c", "long third(long n) { return n; }", true);
    ASSERT_TRUE(cache.add(third, false));
    const auto loaded = cache.load_interface(third);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), ErrorCode::overloaded);
    for (int i = 0; i < 20; ++i) {
        const std::string name = "plain" + std::to_string(i);
        ASSERT_TRUE(cache.add(build(name + ".c", entry("go", std::to_string(i))), false)) << i;
        EXPECT_EQ(call(cache, *cache.find(name + ":go")), i);
    }
    EXPECT_EQ(call(cache, *cache.find("counts0:go")), 2) << "its statics are those that it had";
}

}  // namespace
}  // namespace rove::code
