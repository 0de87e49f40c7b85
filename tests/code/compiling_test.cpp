// The compile thread with a compiler that takes as long as the test wants; and which names an interface may take over.
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <thread>

#include "cache_fixture.hpp"
#include "code/cache_state.hpp"

namespace rove::code {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 30s;

// Compiles nothing, and not before it is let go on.
class SlowEngine final : public jit::Engine {
public:
    Result<std::unique_ptr<jit::CompiledModule>> compile(const jit::CompileRequest& request) override {
        begun.set_value();
        (void)go_on.get_future().wait_for(2 * kPatience);
        return fail(ErrorCode::failed, "{} was not compiled", request.name);
    }
    Result<jit::Prepared> prepare(const jit::PrepareRequest& /*request*/) override {
        return fail(ErrorCode::internal, "it prepares nothing");
    }
    Result<std::vector<jit::Extracted>> extract(const jit::ExtractRequest& /*request*/) override {
        return fail(ErrorCode::internal, "it extracts nothing");
    }
    void warm_up() override {}
    std::promise<void> begun, go_on;
};

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
    [[nodiscard]] static CodeOptions waiting_options(Tiers tiers) {
        constructors = std::make_shared<Constructors>();
        CodeOptions given = options(tiers);
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
    SlowEngine engine_;
};

// They are a peer's code: nobody waits for them but the calls of their own package.
TEST_F(CompilingTest, ConstructorsKeepNoOtherFromRunning) {
    for (const Tiers tiers : {Tiers::image, Tiers::bitcode}) {
        const Form form = tiers == Tiers::image ? Form::image : Form::bitcode;
        CodeCache cache(waiting_options(tiers));
        ASSERT_TRUE(cache.add(arriving(*build("built.cpp", kConstructed), {form}), false));
        Function* built = cache.find("built:go");
        ASSERT_TRUE(std::holds_alternative<Waiting>(cache.enter(*built)));
        ASSERT_TRUE(have_begun(1));
        EXPECT_TRUE(std::holds_alternative<Waiting>(cache.enter(*built))) << "it is not ready before they have run";
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
    CodeCache cache(waiting_options(Tiers::image));
    const auto built = arriving(*build("built.cpp", kConstructed), {Form::image});
    const auto other = arriving(*build("other.c", kCounter), {Form::image});
    ASSERT_TRUE(cache.add(built, false));
    ASSERT_TRUE(cache.add(other, false));
    struct Loading {
        std::promise<std::string> error;
        std::future<std::string> told = error.get_future();
        bool ended() { return told.wait_for(kPatience) == std::future_status::ready; }
    };
    Loading first, second, third;
    const auto load = [&cache](const std::shared_ptr<PackageStore>& package, Loading& loading) {
        return cache.load_later(package, [&loading](const Result<LoadReport>& loaded) {
            loading.error.set_value(loaded ? "" : loaded.error().message());
        });
    };
    ASSERT_TRUE(load(built, first));
    ASSERT_TRUE(have_begun(1));
    ASSERT_TRUE(load(built, second));
    ASSERT_TRUE(load(other, third));
    ASSERT_TRUE(third.ended()) << "it waits for constructors of another package";
    EXPECT_EQ(third.told.get(), "");
    constructors->word.set_value();
    for (Loading* each : {&first, &second}) {
        ASSERT_TRUE(each->ended());
        EXPECT_EQ(each->told.get(), "");
    }
    EXPECT_EQ(constructors->begun, 1);
}

TEST_F(CompilingTest, MoreConstructorsThanMayRunAreRefused) {
    CodeCache cache(waiting_options(Tiers::image));
    const auto enter = [&](std::size_t i) {
        const std::string name = "built" + std::to_string(i);
        EXPECT_TRUE(cache.add(arriving(*build(name + ".cpp", kConstructed), {Form::image}), false));
        return cache.find(name + ":go");
    };
    for (std::size_t i = 0; i < kConstructingMax; ++i)
        ASSERT_TRUE(std::holds_alternative<Waiting>(cache.enter(*enter(i))));
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

// What a peer chose to be large is not decompressed where others wait.
TEST_F(CompilingTest, LargeImagesAreNotLoadedInPlace) {
    const std::string go =
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = t[n] + 7; (void)h; }";
    CodeCache cache(options(Tiers::image));
    const auto first_of = [&](const std::shared_ptr<PackageStore>& package) {
        EXPECT_TRUE(cache.add(arriving(*package, {Form::image}), false));
        Function* function = cache.find(package->function_ids().front());
        const bool in_place = std::holds_alternative<Entered>(cache.enter(*function));
        EXPECT_EQ(call(cache, *function), 7);
        return in_place;
    };
    EXPECT_TRUE(first_of(build("small.c", "static long t[16] = {0, 1};" + go)));
    EXPECT_FALSE(first_of(build("large.c", "long t[16384] = {0, 1};" + go)));
}

TEST_F(CompilingTest, LoadingOneKeepsNoOtherFromRunning) {
    CodeCache cache(slow_options());
    const auto slow = cache.add(arriving(*build("slow.c", kCounter), {Form::bitcode}), false);
    ASSERT_TRUE(slow);
    std::promise<std::string> done;
    ASSERT_TRUE(cache.load_later(
        *slow, [&done](const Result<LoadReport>& loaded) { done.set_value(loaded ? "" : loaded.error().message()); }));
    ASSERT_TRUE(has_begun());
    ASSERT_TRUE(cache.add(arriving(*build("quick.c", kCounter), {Form::image}), false));
    EXPECT_EQ(call(cache, *cache.find("quick:count")), 41);
    engine_.go_on.set_value();
    std::future<std::string> answer = done.get_future();
    ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
    EXPECT_NE(answer.get().find("was not compiled"), std::string::npos);
}

TEST_F(CompilingTest, MoreLoadsThanMayWaitAreRefused) {
    CodeCache cache(slow_options());
    const auto slow = cache.add(arriving(*build("slow.c", kCounter), {Form::bitcode}), false);
    ASSERT_TRUE(slow);
    ASSERT_TRUE(cache.load_later(*slow, [](const auto&) {}));
    ASSERT_TRUE(has_begun());
    for (std::size_t i = 0; i < CodeCache::kLoadsMax; ++i) ASSERT_TRUE(cache.load_later(*slow, [](const auto&) {}));
    const Status refused = cache.load_later(*slow, [](const auto&) {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
    engine_.go_on.set_value();
}

// LLVM cannot be interrupted. In a process of its own, which ends while the compile goes on.
TEST_F(CompilingTest, ACacheEndsDuringACompile) {
    EXPECT_EXIT(
        {
            {
                CodeCache cache(slow_options());
                const auto slow = cache.add(arriving(*build("slow.c", kCounter), {Form::bitcode}), false);
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
        const auto slow = cache.add(arriving(*build("slow.c", kCounter), {Form::bitcode}), false);
        const auto next = cache.add(arriving(*build("next.c", kCounter), {Form::bitcode}), false);
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
        CodeCache cache(options(Tiers::image));
        const auto names = cache.add(arriving(*interface, {Form::image}), preloaded);
        ASSERT_TRUE(names);
        const auto linked = cache.load_interface(*names);
        ASSERT_TRUE(linked) << linked.error().message();
        EXPECT_EQ(linked->kept, preloaded ? std::vector<std::string>{} : std::vector<std::string>{"getppid"});
        ASSERT_TRUE(cache.add(arriving(*user, {Form::image}), false));
        EXPECT_EQ(call(cache, *cache.find("user:go")), (preloaded ? 7 : getppid()) * 100L + 8);
    }
}

}  // namespace
}  // namespace rove::code
