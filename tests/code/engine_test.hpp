// What a test of the engine begins with.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "code/jit/jit.hpp"
#include "toolchain/files.hpp"

namespace rove::code::jit {

// The engine, and a folder that goes with the test. Suite: testing::Test, or one with parameters.
template <typename Suite = testing::Test>
class EngineTest : public Suite {
protected:
    void SetUp() override {
        auto opened = jit::engine();
        ASSERT_TRUE(opened) << opened.error().message();
        engine_ = *opened;
        auto folder = toolchain::TemporaryFolder::make();
        ASSERT_TRUE(folder) << folder.error().message();
        folder_ = std::move(*folder);
    }

    Engine* engine_ = nullptr;
    toolchain::TemporaryFolder folder_;
};

}  // namespace rove::code::jit
