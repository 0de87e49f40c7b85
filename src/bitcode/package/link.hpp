// LLVM's linker for ELF files (lld), in this process: as a separate program it takes 40 ms to start, twenty times what it needs here.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace rove::bitcode {

// Implements Compiler::link().
[[nodiscard]] Status link(const std::vector<std::string>& arguments);

}  // namespace rove::bitcode
