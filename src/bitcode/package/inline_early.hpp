// Inlining before the optimiser begins.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace rove::bitcode {

// Puts internal functions that are called in one place only, or are tiny, into their callers before anything else is done to them.
// The optimiser would do so as well, but last, after it has gone over each by itself: C++'s layers of templates are mostly such
// functions, and an extracted lambda's 35 take it 8 ms that way, and 2 ms as the one that is left of them.
//
// Calls that LLVM's inliner would never inline are not inlined here either. Functions with large frames are left to that inliner, because each
// level of a recursive caller would have the frame.
void inline_early(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace rove::bitcode
