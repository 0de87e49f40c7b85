// Taking functions, and all that they reach, out of the bitcode that a program carries of itself: Compiler says what each does.
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
