// Removes code that compilers add for profilers, coverage and hardening and that needs the program's own runtime or linker. A node has neither
// of them.
#pragma once

namespace llvm {
class Module;
}

namespace rove::bitcode {

// Removes instrumentation that a function does not need: counters of coverage and profiles (-fprofile-instr-generate), calls at a
// function's begin and end (-pg, -finstrument-functions), places to patch (-fxray-instrument, -fpatchable-function-entry), checks of
// control flow (-fsanitize=cfi, kcfi; -fwhole-program-vtables), second or split stacks (-fsanitize=safe-stack, shadow-call-stack,
// -fsplit-stack), guards of the stack (-fstack-protector), and the marks of the sanitizers whose checks LLVM adds (address, thread, memory
// and the like).
void leave_out_instrumentation(llvm::Module& module);

}  // namespace rove::bitcode
