// LLVM's fatal errors: the process goes on, and says what LLVM said.
#include <cstdlib>
#include <utility>

#include "bitcode/compiler.hpp"
#include "bitcode/guard.hpp"
#include "cache_fixture.hpp"
#include "package/pack.hpp"
#include "toolchain/compile.hpp"
#include "toolchain/process.hpp"

namespace rove::code {
namespace {

// An intrinsic that a function of C is named after: the code generator finds no such instruction, because CPUs since Zen have none.
constexpr const char* kTooMuch =
    "unsigned bits(unsigned, unsigned) __asm__(\"llvm.x86.tbm.bextri.u32\");"
    "ROVE_ENTRY void bits_of(rove_here *h, const void *p, size_t n) { *(unsigned *)p = bits(n, 0x804); "
    "(void)h; }";

class GivingUpTest : public CacheTest {
protected:
    void SetUp() override {
        CacheTest::SetUp();
        if (host_triple() != "x86_64-linux-gnu") GTEST_SKIP() << "the instruction is one of x86";
    }
    Result<bitcode::Prepared> prepare(bool object) {
        ROVE_TRY(bitcode::Compiler * compiler, bitcode::compiler());
        const auto source = folder_.path() / "too_much.c";
        ROVE_CHECK(toolchain::write_file(source, as_bytes(std::string("#include <rove/rove.h>\n") + kTooMuch)));
        const std::string triple(host_triple());
        ROVE_TRY(const ByteBuffer module, toolchain::compile({source, triple, {}, folder_.path()}));
        return compiler->prepare(
            {.triple = triple, .modules = {module}, .interface = false, .entries = {}, .object = object});
    }
    // Its bitcode cannot be compiled by any node whose CPU is not named.
    std::shared_ptr<PackageStore> too_much(const std::string& name) {
        const auto prepared = prepare(false);
        EXPECT_TRUE(prepared) << prepared.error().message();
        wire::Manifest manifest;
        manifest.name = name;
        manifest.abi = ROVE_ABI_VERSION;
        manifest.entries = prepared->entries;
        std::vector<ByteBuffer> stored(1);
        manifest.slices.push_back(
            make_slice(std::string(host_triple()), Forms::bitcode, prepared->bitcode, stored.front()));
        auto package = PackageStore::parse(PackageStore::serialize(manifest, stored));
        EXPECT_TRUE(package) << package.error().message();
        return *package;
    }
    // Lets LLVM give up as often as it may, and sees to it that images go on.
    void exhaust() {
        int given_up = 0;
        std::string message;
        for (; given_up <= bitcode::kGivenUpMax; ++given_up) {
            const auto prepared = prepare(true);
            ASSERT_FALSE(prepared);
            message = prepared.error().message();
            if (prepared.error().code() == ErrorCode::unsupported) break;
        }
        EXPECT_EQ(given_up, bitcode::kGivenUpMax);
        EXPECT_NE(message.find("LLVM has given up 8 times in this process"), std::string::npos) << message;
        // The image was made by a process of its own, as packages are.
        const auto rove = std::string(std::getenv("ROVE_BUILD_DIR")) + "/bin/rove";
        const auto source = folder_.path() / "quick.c", file = folder_.path() / "quick.rove";
        ASSERT_TRUE(toolchain::write_file(source, as_bytes(std::string("#include <rove/rove.h>\n") + kCounter)));
        const auto built = toolchain::run({rove, "build", source.string(), "-o", file.string()}, "rove");
        ASSERT_TRUE(built && built->status == 0) << (built ? built->out : built.error().message());
        CodeCache cache(options());
        ASSERT_TRUE(cache.add(*PackageStore::open(file), false));
        EXPECT_EQ(call(cache, *cache.find("quick:count")), 41);
    }
    // The error of a function whose compile fails.
    static Error failure_of(CodeCache& cache, Function& function) {
        for (;;) {
            const auto entered = cache.enter(function);
            if (const auto* error = std::get_if<Error>(&entered)) return *error;
            if (std::holds_alternative<Entered>(entered)) return {ErrorCode::internal, "it has run"};
            cache.wait_for_tiers();
        }
    }
};

TEST_F(GivingUpTest, PrepareFailsWithLlvmsWords) {
    const auto prepared = prepare(true);
    ASSERT_FALSE(prepared);
    EXPECT_EQ(prepared.error().code(), ErrorCode::failed);
    EXPECT_NE(prepared.error().message().find("LLVM gave up: Cannot select"), std::string::npos)
        << prepared.error().message();
}

TEST_F(GivingUpTest, ACacheGoesOnAndCompilesTheNext) {
    CodeCache cache(options(Forms::bitcode));
    const auto package = cache.add(too_much("heavy"), false);
    ASSERT_TRUE(package) << package.error().message();
    const Error error = failure_of(cache, *cache.find("heavy:bits_of"));
    EXPECT_EQ(error.code(), ErrorCode::failed);
    EXPECT_NE(error.message().find("bits_of does not compile: LLVM gave up: Cannot select"), std::string::npos)
        << error.message();
    ASSERT_TRUE(cache.add(arriving(*build("quick.c", kCounter), {Forms::bitcode}), false));
    EXPECT_EQ(call(cache, *cache.find("quick:count")), 41);
}

// In a process of its own, in which LLVM has not given up yet.
TEST_F(GivingUpTest, OnlySoOftenThenImagesGoOn) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            exhaust();
            {
                const toolchain::TemporaryFolder removed = std::move(folder_);
            }
            std::_Exit(HasFailure() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace rove::code
