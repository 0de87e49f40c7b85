// The fixture of the compiler's tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "bitcode/compiler.hpp"
#include "toolchain/files.hpp"
#include "toolchain/process.hpp"

namespace rove::bitcode {

// The compiler, and a folder that goes with the test. Suite: testing::Test, or one with parameters.
template <typename Suite = testing::Test>
class CompilerTest : public Suite {
protected:
    void SetUp() override {
        auto opened = bitcode::compiler();
        ASSERT_TRUE(opened) << opened.error().message();
        compiler_ = *opened;
        auto folder = toolchain::TemporaryFolder::make();
        ASSERT_TRUE(folder) << folder.error().message();
        folder_ = std::move(*folder);
    }

    // The bitcode of a source, as rove build has clang make it.
    ByteBuffer bitcode_of(const std::string& name, const std::string& text,
                          const std::string& triple = "x86_64-linux-gnu", const std::string& level = "-O2",
                          const std::vector<std::string>& more = {}) {
        const auto source = folder_.path() / name;
        const auto out = folder_.path() / (name + ".bc");
        EXPECT_TRUE(toolchain::write_file(source, as_bytes("#include <rove/rove.h>\n" + text)));
        const bool cpp = name.ends_with(".cpp");
        const char* tree = std::getenv("ROVE_SOURCE_DIR");
        std::vector<std::string> command{cpp ? "clang++-19" : "clang-19",
                                         "-target",
                                         triple,
                                         level,
                                         "-Xclang",
                                         "-disable-llvm-passes",
                                         "-emit-llvm",
                                         "-c",
                                         "-fPIC",
                                         "-fno-plt",
                                         "-I" + std::string(tree != nullptr ? tree : ".") + "/include",
                                         source.string(),
                                         "-o",
                                         out.string()};
        command.insert(command.end(), more.begin(), more.end());
        const auto done = toolchain::run(command, cpp ? "clang++-19" : "clang-19");
        EXPECT_TRUE(done && done->status == 0) << (done ? done->out : done.error().message());
        auto bytes = toolchain::read_file(out);
        EXPECT_TRUE(bytes) << name;
        return bytes ? *bytes : ByteBuffer();
    }

    Compiler* compiler_ = nullptr;
    toolchain::TemporaryFolder folder_;
};

}  // namespace rove::bitcode
