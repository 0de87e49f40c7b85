// A code cache that is refused memory, one allocation after the other: nothing stays taken, and the next call does its work.
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include "../lost_memory.hpp"
#include "../watched_new.hpp"
#include "base/clock.hpp"
#include "bitcode/compiler.hpp"
#include "cache_fixture.hpp"
#include "cache_parts.hpp"
#include "code/known.hpp"
#include "given_compiler.hpp"

namespace {

// Counts down with each allocation: the one that makes it 0 is refused. 0: none is.
std::atomic<int> refused_in{0};
thread_local bool is_spared = false;

}  // namespace

void rove::test::asked_for(std::size_t /*bytes*/) {
    if (!is_spared && refused_in > 0 && refused_in.fetch_sub(1) == 1) throw std::bad_alloc();
}

namespace rove::code {
namespace {

constexpr int kMost = 500;  // that one piece of work asks for
constexpr const char* kOther =
    "ROVE_ENTRY void other(rove_here *h, const void *p, size_t n) { (void)h, (void)p, (void)n; }";

class CacheWithoutMemory : public CacheTest {
protected:
    void TearDown() override { refused_in = 0; }
};

// This thread has an object that ends by a package's code, which stays for that.
TEST_F(CacheWithoutMemory, CodeThatAThreadAwaitsStaysWithoutAny) {
    const auto package = build("awaited.cpp", R"(
        extern "C" void note(long);
        struct Ends {
            long with;
            ~Ends() { note(with); }
        };
        ROVE_ENTRY void go(rove_here*, const void* payload, size_t) {
            thread_local Ends ends{3};
            *static_cast<long*>(const_cast<void*>(payload)) = ends.with;
        })");
    noted.clear();
    auto cache = std::make_unique<CodeCache>(options(Forms::image));
    ASSERT_TRUE(cache->add(arriving(*package, {Forms::image}), false));
    std::promise<void> called, word;
    std::thread other([&] {
        EXPECT_EQ(call(*cache, *cache->find(package->function_ids().front())), 3);
        called.set_value();
        word.get_future().wait();
    });
    called.get_future().wait();
    refused_in = 1;
    cache.reset();
    EXPECT_EQ(refused_in, 1) << "it asked for some";
    refused_in = 0;
    EXPECT_TRUE(noted.empty());
    word.set_value();
    other.join();
    EXPECT_EQ(noted, std::vector<long>{3});
}

TEST_F(CacheWithoutMemory, WhatCouldNotBeEnteredHoldsNothing) {
    const auto counter = build("counter.c", kCounter);
    const auto other = build("other.c", kOther);
    int refused = 1, refusals = 0;
    for (bool in_want = true; in_want && refused < kMost; ++refused) {
        CodeOptions one = options(Forms::image);
        one.packages_max = 1;
        CodeCache cache(one);
        ASSERT_TRUE(cache.add(arriving(*counter, {Forms::image}), false));
        Function* function = cache.find(counter->function_ids().front());
        bool entered = false;
        refused_in = refused;
        try {
            entered = std::holds_alternative<Entered>(cache.enter(*function));
        } catch (const std::bad_alloc&) {
        }
        in_want = refused_in.exchange(0) <= 0;
        if (entered) continue;
        ++refusals;
        EXPECT_EQ(cache.usage().static_bytes, 0U) << "allocation " << refused;
        EXPECT_EQ(cache.usage().loads, 0U) << "allocation " << refused;
        if (refused % 2 == 0)
            EXPECT_EQ(call(cache, *function), 41) << "allocation " << refused;
        else  // it makes room for another one
            EXPECT_TRUE(cache.add(arriving(*other, {Forms::image}), false)) << "allocation " << refused;
    }
    EXPECT_GT(refusals, 5);
    EXPECT_LT(refused, kMost);
}

TEST_F(CacheWithoutMemory, WhatCouldNotBecomeKnownIsKnownByNoName) {
    const auto counter = build("counter.c", kCounter);
    for (const bool is_new : {false, true}) {  // its tables have grown by then, or grow each time
        auto cache = std::make_unique<CodeCache>(options(Forms::image));
        int refused = 1;
        for (bool is_known = false; !is_known && refused < kMost; ++refused) {
            if (is_new) cache = std::make_unique<CodeCache>(options(Forms::image));
            const auto arrives = arriving(*counter, {Forms::image});
            refused_in = refused;
            try {
                is_known = cache->add(arrives, false).has_value();
            } catch (const std::bad_alloc&) {
            }
            refused_in = 0;
            if (is_known) continue;
            for (const FunctionId& id : counter->function_ids())
                EXPECT_EQ(cache->find(id), nullptr) << "allocation " << refused;
            EXPECT_EQ(cache->find(counter->manifest().name + ":" + counter->manifest().entries.front()), nullptr);
            EXPECT_EQ(cache->package(counter->digest()), nullptr) << "allocation " << refused;
            EXPECT_EQ(cache->usage().packages, 0U);
        }
        EXPECT_GT(refused, 5);
        EXPECT_LT(refused, kMost);
        EXPECT_EQ(call(*cache, *cache->find(counter->function_ids().front())), 41);
    }
}

// What it takes to put names that have come is taken before anything is put.
TEST_F(CacheWithoutMemory, ANameThatWasNotPutIsPutByTheNextCall) {
    const auto two = build("two.c", "long elsewhere(long);\n" + entry("one", "1") + entry("three", "elsewhere(3)"));
    const auto interface = build("elsewhere.c", "long elsewhere(long n) { return 100 + n; }", true);
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        CodeCache cache(options(form == Forms::image ? Forms::image : Forms::bitcode));
        ASSERT_TRUE(cache.add(arriving(*two, {form}), false));
        ASSERT_EQ(call(cache, *cache.find("two:one")), 1);
        const auto known = cache.add(arriving(*interface, {form}), false);
        ASSERT_TRUE(known && cache.load_interface(*known));
        Function* three = cache.find("two:three");
        int refused = 1;
        for (bool entered = false; !entered && refused < kMost; ++refused) {
            refused_in = refused;
            try {
                entered = std::holds_alternative<Entered>(cache.enter(*three));
            } catch (const std::bad_alloc&) {
            }
            refused_in = 0;
            EXPECT_EQ(call(cache, *cache.find("two:one")), 1) << "allocation " << refused;
        }
        EXPECT_GT(refused, 2);
        EXPECT_LT(refused, kMost);
        EXPECT_EQ(call(cache, *three), 103);
    }
}

// What a worker does not do for want of memory costs that piece of work. Another call does it.
class WorkerWithoutMemory : public CacheTest {
protected:
    void SetUp() override {
        CacheTest::SetUp();
        is_spared = true;
        noted.reserve(100'000);
    }
    void TearDown() override { refused_in = 0; }

    // Does it again and again, and each time one allocation later of the cache's threads is refused.
    template <typename Work>
    void with_each_refused(const Work& work) {
        int refused = 1, errors = 0;
        for (bool in_want = true; in_want && refused < kMost; ++refused) {
            SCOPED_TRACE(refused);
            work(errors, [&] { refused_in = refused; }, [&] { in_want = refused_in.exchange(0) <= 0; });
        }
        EXPECT_GT(errors, 3);
        EXPECT_LT(refused, kMost);
    }
    // Until it can be entered or not.
    static std::optional<Error> outcome(CodeCache& cache, Function& function) {
        for (;;) {
            const auto entered = cache.enter(function);
            if (const auto* error = std::get_if<Error>(&entered)) return *error;
            if (std::holds_alternative<Entered>(entered)) return std::nullopt;
            cache.wait_for_tiers();
        }
    }
    static void expect_no_memory(const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::overloaded) << error.message();
        EXPECT_TRUE(error.message().find("no memory") != std::string::npos ||
                    error.message() == no_memory().message() || error.message().find("no thread") != std::string::npos)
            << error.message();
    }
    // Whether the allocation that was refused was one that the first call needed: then it says so.
    template <typename Begin, typename End>
    static bool first_call_fails(CodeCache& cache, Function& function, int& errors, const Begin& begin,
                                 const End& end) {
        begin();
        const auto error = outcome(cache, function);
        cache.wait_for_tiers();
        end();
        if (!error) return false;
        ++errors;
        expect_no_memory(*error);
        return true;
    }
};

TEST_F(WorkerWithoutMemory, AnImageThatWasNotLoadedIsLoadedForTheNextCall) {
    const auto package =
        build("constructs.c",
              "extern void note(long);\nstatic long c;\n"
              "__attribute__((constructor)) static void begin(void) { note(1); c = 40; }\n"
              "ROVE_ENTRY void count(rove_here *h, const void *p, size_t n) { *(long *)p = ++c; (void)h, (void)n; }");
    with_each_refused([&](int& errors, const auto& begin, const auto& end) {
        noted.clear();
        CodeCache cache(options(Forms::image));
        ASSERT_TRUE(cache.add(arriving(*package, {Forms::image}), false));
        Function* function = cache.find("constructs:count");
        if (first_call_fails(cache, *function, errors, begin, end)) EXPECT_EQ(cache.usage().static_bytes, 0U);
        EXPECT_EQ(call(cache, *function), 41);
        EXPECT_EQ(noted, std::vector<long>{1}) << "its constructor runs once";
    });
}

TEST_F(WorkerWithoutMemory, EachLoadIsAnswered) {
    const auto shelf = build("shelf.c",
                             "ROVE_ENTRY void none(rove_here *h, const void *p, size_t n) { (void)h, (void)p, "
                             "(void)n; }\nlong on_the_shelf(void) { return 7; }",
                             true);
    with_each_refused([&](int& errors, const auto& begin, const auto& end) {
        CodeCache cache(options(Forms::image));
        const auto known = cache.add(arriving(*shelf, {Forms::image}), false);
        ASSERT_TRUE(known);
        std::atomic<int> answers{0};
        std::optional<Error> error;
        begin();
        ASSERT_TRUE(cache.load_later(*known, [&](const Result<LoadReport>& loaded) {
            if (!loaded) error = loaded.error();
            ++answers;
        }));
        for (const auto until = Clock::now() + std::chrono::seconds(20); answers == 0 && Clock::now() < until;)
            std::this_thread::yield();
        end();
        cache.stop();
        EXPECT_EQ(answers, 1);
        if (error) {
            ++errors;
            expect_no_memory(*error);
        }
    });
}

// As LLVM would compile it; its own allocations are not of interest here.
class Compiled final : public bitcode::CompiledModule {
public:
    void* find(std::string_view /*name*/) const override { return reinterpret_cast<void*>(&answer); }
    std::size_t code_bytes() const override { return 100; }
    bool has_constructors() const override { return false; }
    bool has_own_statics() const override { return false; }
    void run_constructors() override {}
    bool can_put(std::string_view /*name*/) const override { return false; }
    Status put(const std::vector<std::pair<std::string_view, void*>>& /*names*/) override { return {}; }

private:
    static void answer(rove_here* /*here*/, const void* payload, std::size_t /*size*/) {
        *static_cast<long*>(const_cast<void*>(payload)) = 99;
    }
};
class QuickCompiler final : public CompilesOnly {
public:
    Result<std::unique_ptr<bitcode::CompiledModule>> compile(const bitcode::CompileRequest& /*request*/) override {
        return std::make_unique<Compiled>();
    }
};

TEST_F(WorkerWithoutMemory, BitcodeThatWasNotCompiledIsCompiledForTheNextCall) {
    const auto counter = build("counter.c", kCounter);
    QuickCompiler compiler;
    with_each_refused([&](int& errors, const auto& begin, const auto& end) {
        CodeOptions given = options(Forms::bitcode);
        given.compiler = [&compiler]() -> Result<bitcode::Compiler*> { return &compiler; };
        CodeCache cache(given);
        ASSERT_TRUE(cache.add(arriving(*counter, {Forms::bitcode}), false));
        Function* function = cache.find("counter:count");
        (void)first_call_fails(cache, *function, errors, begin, end);
        EXPECT_EQ(call(cache, *function), 99);
    });
}

// ---- the compiler itself

// A link that is cut off by that is no failure of the code, and leaves LLVM to the next one.
TEST_F(CacheWithoutMemory, LinkingThatWasRefusedMemoryIsTriedAgain) {
    test::llvm_loses_memory = true;
    const auto counter = build("counter.c", kCounter);
    const auto slice = counter->slice_index(host_triple(), Forms::bitcode);
    ASSERT_TRUE(slice);
    const ByteBuffer bitcode = counter->raw_slice(*slice).value();
    bitcode::Compiler& compiler = **bitcode::compiler();
    const auto compile = [&] {
        return compiler.compile(
            {.name = "counter", .remedy = {}, .bitcode = bitcode, .resolve = [](std::string_view) -> void* {
                 return nullptr;
             }});
    };
    ASSERT_TRUE(compile());
    int refused = 0;
    for (int step = 1; step < 4'000; step = step + 1 + step / 12) {
        refused_in = step;
        try {
            const auto made = compile();
            if (refused_in == 0) {
                ++refused;
                EXPECT_FALSE(!made && made.error().code() == ErrorCode::failed)
                    << step << ": " << made.error().message();
            }
        } catch (const std::bad_alloc&) {
            ++refused;
        }
        refused_in = 0;
        const auto again = compile();
        ASSERT_TRUE(again) << step << ": " << again.error().message();
    }
    EXPECT_GT(refused, 20);
}

// In whatever thread: a cache's worker, or the one that ends the cache.
TEST_F(CacheWithoutMemory, FreeingModulesThrowsNothing) {
    test::llvm_loses_memory = true;
    const auto counter = build("counter.c", kCounter);
    const ByteBuffer bitcode = counter->raw_slice(*counter->slice_index(host_triple(), Forms::bitcode)).value();
    bitcode::Compiler& compiler = **bitcode::compiler();
    const auto compile = [&] {
        return compiler.compile(
            {.name = "counter", .remedy = {}, .bitcode = bitcode, .resolve = [](std::string_view) -> void* {
                 return nullptr;
             }});
    };
    int refused = 0;
    for (int step = 1; step < 60; ++step) {
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(compile());
        refused_in = step;
        EXPECT_NO_THROW(compiler.free_modules()) << step;
        refused += refused_in == 0 ? 1 : 0;
        refused_in = 0;
    }
    EXPECT_GT(refused, 5);
    EXPECT_TRUE(compile());
}

// ---- what is known, by itself

using KnownWithoutMemory = PartsTest;

TEST_F(KnownWithoutMemory, AResidentFunctionThatCouldNotBecomeKnownTakesNothing) {
    const LockOf lock(mutex_);
    Known known;
    const std::size_t room = known.room();
    const FunctionId id{{1, 2}};
    int step = 1;
    const Function* added = nullptr;
    for (; added == nullptr && step < kMost; ++step) {
        std::string name(100, 'f');
        refused_in = step;
        try {
            added = known.add(id, std::move(name), reinterpret_cast<EntryPoint>(&known));
        } catch (const std::bad_alloc&) {
        }
        refused_in = 0;
        if (added != nullptr) break;
        EXPECT_EQ(known.room(), room) << "allocation " << step;
        EXPECT_EQ(known.functions(), 0U) << "allocation " << step;
    }
    ASSERT_NE(added, nullptr);
    EXPECT_GT(step, 3);
    EXPECT_EQ(known.room(), room - 1);
    EXPECT_EQ(known.by_handle(added->handle), added);
}

// ---- new code by itself

using NewCodesWithoutMemory = KeepingTest;

// Constructors have run by then, so nothing may fail any more.
TEST_F(NewCodesWithoutMemory, CodeBecomesThePackagesWithoutAny) {
    wire::Image image = image_of(1);
    image.data_bytes = 16;
    PackageCode& package = know({.name = "sum", .pinned = true, .image = image});
    NewCode code = loaded(package, image);
    code.statics = {{.number = 0, .offset = 0}};
    code.exported["shelf"] = &image;
    NewCode compiled;
    compiled.module = std::make_unique<GivenModule>();
    compiled.entries.resize(1);
    compiled.name_entry(package, 0, &image);
    const LockOf lock(mutex_);
    ASSERT_TRUE(evictor_.reserve(package, 100, 16));
    refused_in = 1;
    new_codes_.take_image(package, image, std::move(code));
    new_codes_.take_module(package, std::move(compiled));
    EXPECT_EQ(refused_in.exchange(0), 1) << "it asked for some";
    EXPECT_EQ(reinterpret_cast<void*>(package.functions[0]->target.load()), &image);
    EXPECT_EQ(budgets_.keepers().size(), 1U);
}

}  // namespace
}  // namespace rove::code
