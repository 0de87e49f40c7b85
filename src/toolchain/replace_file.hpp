// Changing a program's file in place, or not at all.
//
// Threads: one at a time, as run() (process.hpp).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rove::toolchain {

// Runs a command of objcopy that writes a changed copy of the program into a folder beside it, and renames the copy over the program, with the
// program's owner and rights. After an error or an interruption the program is unchanged. The names of the two files are appended to the
// command. failed: the message says why it was not written.
[[nodiscard]] Status replace_by(std::vector<std::string> command, const std::filesystem::path& program);

}  // namespace rove::toolchain
