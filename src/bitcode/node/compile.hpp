// Compiling bitcode for the CPU that is there.
#pragma once

#include "bitcode/compiled.hpp"

namespace rove::bitcode {

[[nodiscard]] Result<std::unique_ptr<CompiledModule>> compile(const CompileRequest& request);
void free_modules();

}  // namespace rove::bitcode
