// A temporary folder of sources, and what rove build makes of them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "package/package.hpp"
#include "toolchain/build.hpp"
#include "toolchain/files.hpp"
#include "toolchain/process.hpp"
#include "wire/image.hpp"

namespace rove::toolchain {

inline constexpr std::string_view kX86 = "x86_64-linux-gnu";
inline constexpr std::string_view kArm = "aarch64-linux-gnu";

// `NAME` as a function that is packed; its body sees here, payload and size.
[[nodiscard]] std::string entry(std::string_view name, std::string_view body);

class Workshop : public testing::Test {
protected:
    void SetUp() override;

    std::filesystem::path write(const std::string& name, std::string_view text);
    // Builds and opens the package; warnings are collected.
    Result<std::shared_ptr<PackageStore>> build_of(BuildOptions options);
    Result<std::shared_ptr<PackageStore>> build_of(const std::string& name, std::string_view text);
    // A command of this machine, with its output; by its words, through no shell.
    Ran run_command(const std::vector<std::string>& words);
    [[nodiscard]] std::filesystem::path folder() const { return folder_.path(); }

    std::vector<std::string> warnings_;

private:
    TemporaryFolder folder_;
};

// The image for a target, or a failed expectation and an empty one.
[[nodiscard]] wire::Image image_of(const PackageStore& package, std::string_view triple);
[[nodiscard]] bool mentions(std::string_view text, std::string_view what);

}  // namespace rove::toolchain
