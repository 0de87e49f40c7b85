// Running the compiler and the linker.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace rove::toolchain {

struct Finished {
    int status = 0;      // exit status; 128 + signal when it was ended by one
    std::string output;  // stdout and stderr together, the first kOutputBytesMax of them
};
inline constexpr std::size_t kOutputBytesMax = 16 * 1024;

// Runs a program (found on PATH; no shell) to its end. unsupported: it is not installed; names `debian_package`.
[[nodiscard]] Result<Finished> run(const std::vector<std::string>& command, const std::string& debian_package);

}  // namespace rove::toolchain
