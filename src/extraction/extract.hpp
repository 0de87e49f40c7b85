// Takes functions, and all that they reach, out of the bitcode that a program's file contains: Compiler describes what each function does.
//
// Threads: any. read_own() and extract_own() share one program of the process, under one lock. After LLVM has given up in it, it is read again.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "bitcode/extracted.hpp"

namespace rove::bitcode {

[[nodiscard]] Result<std::vector<Extracted>> extract_all(const ExtractRequest& request);
[[nodiscard]] Status read_own(const ProgramBitcode& own);
[[nodiscard]] Result<Extracted> extract_own(const ProgramBitcode& own, std::string_view key);

}  // namespace rove::bitcode
