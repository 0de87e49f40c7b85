// Defines the bytes of initial values that the compiler has left undefined.
//
// clang writes `union { void *first; struct { int a, b, c; } other; } shared = {0};` with undef for the bytes after the first member. An ELF
// file has no undef: such bytes are zero in the program's file, and code of another file that accesses the variable relies on that. In a
// package the variable is internal, and the optimiser would treat values read from it as never defined, and remove the code that depends on
// them.
#pragma once

namespace llvm {
class Module;
}

namespace rove::bitcode {

// Replaces undef and poison by zeros in the initial values of the module's variables. To be called before anything is made internal or
// optimised.
void define_initial_values(llvm::Module& module);

}  // namespace rove::bitcode
