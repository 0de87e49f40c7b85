// Bitcode that a test writes down in LLVM's assembly, and asks the compiler to compile.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "bitcode/compiler.hpp"
#include "compiler_test.hpp"
#include "toolchain/files.hpp"
#include "toolchain/process.hpp"

namespace rove::bitcode {

// Takes LLVM some milliseconds.
inline const std::string kLasting = [] {
    std::string text = "define i32 @go(i32 %v0) {\n";
    for (int i = 1; i <= 5'000; ++i) text += fmt::format("  %v{} = mul i32 %v{}, {}\n", i, i - 1, 2 * i + 1);
    return text + "  ret i32 %v5000\n}\n";
}();

class WrittenBitcode : public CompilerTest<> {
protected:
    // Of LLVM's assembly.
    ByteBuffer bitcode_of(const std::string& text) {
        const std::string source = (folder_.path() / "deep.ll").string(), out = (folder_.path() / "deep.bc").string();
        EXPECT_TRUE(toolchain::write_file(source, as_bytes("target triple = \"x86_64-unknown-linux-gnu\"\n" + text)));
        // It goes down by recursion, too.
        const auto made = toolchain::run(
            {"prlimit", "--stack=1073741824:", "llvm-as-19", "-disable-verify", source, "-o", out}, "llvm-19");
        EXPECT_TRUE(made && made->status == 0) << (made ? made->out : made.error().message());
        auto bitcode = toolchain::read_file(out);
        EXPECT_TRUE(bitcode);
        return std::move(*bitcode);
    }
    // Why it is not compiled; empty: it is.
    std::string why_not(const std::string& text) { return why_not_compiled(bitcode_of(text)); }
    std::string why_not_compiled(const ByteBuffer& bitcode, const std::optional<Bounds>& bounds = std::nullopt) {
        CompileRequest request{
            .name = "deep",
            .bitcode = bitcode,
            .resolve = [](std::string_view name) { return dlsym(RTLD_DEFAULT, std::string(name).c_str()); },
        };
        if (bounds) request.bounds = *bounds;
        const auto compiled = compiler_->compile(request);
        return compiled ? std::string() : compiled.error().message();
    }
    // As if it were the program's own: in this process.
    std::string why_not_prepared(const ByteBuffer& bitcode) {
        const auto prepared = compiler_->prepare(
            {.triple = "x86_64-linux-gnu", .modules = {bitcode}, .interface = false, .entries = {"go"}});
        return prepared ? std::string() : prepared.error().message();
    }
    // Calls `meet` while another thread has LLVM work in this process, and faults are taken.
    template <typename Meet>
    void while_work_runs(const Meet& meet) {
        const ByteBuffer bitcode = bitcode_of(kLasting);
        std::atomic<bool> done{false};
        std::thread other([&] {
            while (!done) (void)why_not_prepared(bitcode);
        });
        for (struct sigaction now{}; now.sa_handler == SIG_DFL; std::this_thread::yield())
            (void)sigaction(SIGFPE, nullptr, &now);
        meet();
        done = true;
        other.join();
    }
};

// A variable of a type that nests so deep, and a function that copies it.
inline std::string with_types(int levels) {
    std::string text = "%t0 = type { i8 }\n";
    for (int i = 1; i <= levels; ++i) text += fmt::format("%t{} = type {{ %t{} }}\n", i, i - 1);
    return text + fmt::format(
                      "@v = global %t{0} zeroinitializer\n"
                      "define void @go(ptr %from) {{\n  %a = alloca %t{0}\n  %all = load %t{0}, ptr %from\n"
                      "  store %t{0} %all, ptr %a\n  store %t{0} %all, ptr @v\n  ret void\n}}\n",
                      levels);
}

}  // namespace rove::bitcode
