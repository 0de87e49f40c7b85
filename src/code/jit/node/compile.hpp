// Compiling bitcode for the CPU that is there.
#pragma once

#include "code/jit/jit.hpp"

namespace rove::code::jit {

[[nodiscard]] Result<std::unique_ptr<CompiledModule>> compile(const CompileRequest& request);

}  // namespace rove::code::jit
