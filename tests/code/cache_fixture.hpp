// The fixture of the cache's tests: builds packages, and calls functions in them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "code/cache.hpp"
#include "toolchain/build.hpp"
#include "toolchain/files.hpp"
#include "wire/image.hpp"

namespace rove::code {

inline std::vector<long> noted;  // what shipped code told this process
extern "C" inline void note(long value) {
    noted.push_back(value);
}

inline constexpr const char* kCounter =
    "ROVE_ENTRY void count(rove_here *h, const void *p, size_t n) { static long c = 40; *(long *)p = ++c; (void)h, "
    "(void)n; }";

// An entry in C that stores a value through its payload.
inline std::string entry(const std::string& name, const std::string& value) {
    return "ROVE_ENTRY void " + name +
           "(rove_here *h, const void *p, size_t n) { (void)h, (void)n; *(long *)p = " + value + "; }\n";
}

class CacheTest : public testing::Test {
protected:
    // A function's address in its image. Without the lock of the cache: only loading and evicting the image change it, and a test does neither
    // at that time.
    [[nodiscard]] static EntryPoint in_image(const Function* function) NO_THREAD_SAFETY_ANALYSIS {
        return function->image;
    }
    void SetUp() override {
        noted.clear();
        auto made = toolchain::TemporaryFolder::make();
        ASSERT_TRUE(made);
        folder_ = std::move(*made);
    }

    std::shared_ptr<PackageStore> build(const std::string& file, const std::string& text, bool interface = false) {
        toolchain::BuildOptions options;
        options.source = folder_.path() / file;
        options.output = folder_.path() / (file + std::to_string(++built_) + ".rove");
        options.targets = {std::string(host_triple())};
        options.interface = interface;
        EXPECT_TRUE(toolchain::write_file(options.source, as_bytes("#include <rove/rove.h>\n" + text)));
        const Status done = toolchain::build(options);
        EXPECT_TRUE(done) << done.error().message();
        auto package = PackageStore::open(options.output);
        EXPECT_TRUE(package) << package.error().message();
        return package ? *package : nullptr;
    }
    // The package as it arrives from a peer: the manifest, and the slices of some forms.
    static std::shared_ptr<PackageStore> arriving(const PackageStore& whole, const std::vector<Forms>& forms) {
        auto package = PackageStore::from_manifest(whole.manifest_bytes());
        EXPECT_TRUE(package);
        for (const Forms form : forms) {
            const auto slice = whole.slice_index(host_triple(), form);
            EXPECT_TRUE(slice) << "no " << wire::to_string(form);
            if (slice) EXPECT_TRUE((*package)->add_slice(*slice, *whole.stored_slice(*slice)));
        }
        return *package;
    }
    static CodeOptions options(Forms forms = Forms::both, std::size_t code_bytes_max = 64 * 1024 * 1024) {
        CodeOptions given;
        given.node = "node 7";
        given.host_symbols = {{"note", reinterpret_cast<void*>(&note)}};
        given.forms = forms;
        given.code_bytes_max = code_bytes_max;
        return given;
    }
    // Returns the value that the function stores through its payload. Waits for a compile, and fails the test for anything else.
    static long call(CodeCache& cache, Function& function, RanAs* ran = nullptr) {
        long answer = -1;
        for (;;) {
            auto entered = cache.enter(function);
            if (auto* held = std::get_if<Entered>(&entered)) {
                held->run(nullptr, &answer, sizeof answer);
                if (ran != nullptr) *ran = held->ran();
                return answer;
            }
            if (auto* error = std::get_if<Error>(&entered)) {
                ADD_FAILURE() << error->message();
                return -1;
            }
            if (std::get<Awaited>(entered) == Awaited::code) {
                ADD_FAILURE() << "its code is not here";
                return -1;
            }
            cache.wait_for_tiers();
        }
    }
    static std::string error_of(CodeCache& cache, Function& function) {
        const auto entered = cache.enter(function);
        const auto* error = std::get_if<Error>(&entered);
        return error != nullptr ? error->message() : "";
    }
    static bool waits_for_code(CodeCache& cache, Function& function) {
        const auto entered = cache.enter(function);
        const auto* waiting = std::get_if<Awaited>(&entered);
        return waiting != nullptr && *waiting == Awaited::code;
    }

    toolchain::TemporaryFolder folder_;
    int built_ = 0;
};

}  // namespace rove::code
