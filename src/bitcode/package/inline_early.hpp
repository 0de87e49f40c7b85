// Inlining before the optimiser begins.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace rove::bitcode {

// Merges internal functions that are called in one place only, or are tiny, into their callers before any other pass. The optimiser would
// do so as well, but last, after it has optimised each separately: C++'s layers of templates are mostly such functions, and the 35 of an
// extracted lambda take 8 ms that way, and 2 ms merged.
//
// Calls that LLVM's inliner would never inline are not inlined here either. Functions with large frames are left to that inliner, because each
// level of a recursive caller would have the frame.
void inline_early(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace rove::bitcode
