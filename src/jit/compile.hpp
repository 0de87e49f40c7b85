// Compiling bitcode for this machine's CPU: implements Compiler::compile() and free_modules().
//
// Threads: any. Bitcode is compiled in other processes, several at the same time (jit/process/process.hpp); linked into this one, one module after
// the other.
//
// Invariant: an LLVM session in which LLVM gave up, or memory ran out, is never entered again. The code that was linked in it remains loaded.
#pragma once

#include "bitcode/compiled.hpp"

namespace rove::bitcode {

[[nodiscard]] Result<std::unique_ptr<CompiledModule>> compile(const CompileRequest& request);
void free_modules();

}  // namespace rove::bitcode
