// Changing a program's file in place, or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rove::toolchain {

// Has a command of objcopy's write the program anew, beside it, and take its place, with its owner and rights: what is interrupted leaves it
// as it was. The command lacks the two files, which are added. failed: why it was not written.
[[nodiscard]] Status replace_by(std::vector<std::string> command, const std::filesystem::path& program);

}  // namespace rove::toolchain
