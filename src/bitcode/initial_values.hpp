// Defines the bytes of initial values that the compiler has left undefined.
//
// clang writes `union { void *first; struct { int a, b, c; } other; } shared = {0};` with undef for what is beyond the first member. A linker's
// files have no undef: such bytes are zero in the program's file, and code that another file may write to the variable reads them from there.
// In a package the variable is internal, and the optimiser would take what is read as never defined, and drop the code that depends on it.
#pragma once

namespace llvm {
class Module;
}

namespace rove::bitcode {

// Puts zeros in place of undef and poison in the initial values of the module's variables. Before anything is made internal or optimised.
void define_initial_values(llvm::Module& module);

}  // namespace rove::bitcode
