// The fixture of tests of a cache's threads: a compiler, and packages with constructors, that run for as long as the test wants.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "cache_fixture.hpp"
#include "slow_compiler.hpp"

namespace rove::code {

// The constructors of a package that has arrived: they report that they have begun, and wait for the test's word.
struct WaitingConstructors {
    std::atomic<int> begun{0};
    std::promise<void> word;
    std::shared_future<void> said = word.get_future().share();
};
inline std::shared_ptr<WaitingConstructors> constructors;
extern "C" inline int wait_for_word() {
    const std::shared_ptr<WaitingConstructors> held = constructors;
    ++held->begun;
    held->said.wait();
    return 7;
}

inline constexpr const char* kConstructed =
    "extern \"C\" int wait_for_word(); static int s = wait_for_word(); ROVE_ENTRY void go(rove_here *h, const void *p, "
    "size_t n) { *(long *)p = s; (void)h, (void)n; }";

class CompilingTest : public CacheTest {
protected:
    [[nodiscard]] CodeOptions slow_options() {
        CodeOptions given = options();
        given.compiler = [this]() -> Result<bitcode::Compiler*> { return &compiler_; };
        return given;
    }
    [[nodiscard]] bool has_begun() {
        return compiler_.begun.get_future().wait_for(kPatience) == std::future_status::ready;
    }
    [[nodiscard]] static CodeOptions waiting_options(Forms forms) {
        constructors = std::make_shared<WaitingConstructors>();
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
    SlowCompiler compiler_;
};

}  // namespace rove::code
