// What compilers add to code for profilers, coverage and hardening that needs the program's own runtime, or its own linker, and what
// LLVM cannot compile at all. Code that travels has neither runtime nor linker where it arrives.
#pragma once

#include <llvm/IR/Module.h>

#include "base/result.hpp"

namespace rove::code::jit {

// Removes what a function works without: counters of coverage and profiles (-fprofile-instr-generate), calls at a function's begin and end
// (-pg, -finstrument-functions), places to patch (-fxray-instrument, -fpatchable-function-entry), checks of control flow (-fsanitize=cfi,
// kcfi; -fwhole-program-vtables), second or split stacks (-fsanitize=safe-stack, shadow-call-stack, -fsplit-stack), guards of the stack
// (-fstack-protector), and the marks of the sanitizers whose checks LLVM adds (address, thread, memory and the like).
void leave_out_instrumentation(llvm::Module& module);
// unsupported: LLVM would give up on what a function holds; names the function and what the remedy is. Or the module's constants and
// variables with a value are larger than a slice may be. For an optimised module with its data layout.
[[nodiscard]] Status check_compilable(const llvm::Module& module);
// unsupported: its other variables are larger than a node's statics, and a node would take memory for them.
[[nodiscard]] Status check_zeros(const llvm::Module& module);

}  // namespace rove::code::jit
