// Functions of a package that the C library has as well: a strcmp of its own.
#pragma once

#include <llvm/IR/Module.h>

#include <vector>

namespace rove::bitcode {

// LLVM treats a function as the C library's (it computes calls of it, or removes them) if it has the name and the type and is external. In its
// program the function was external; in a package it is internal. So these functions are external while the optimiser runs.
//
// Made before the package's functions become internal; the module outlives it. Threads: those of the module's context, one at a time.
// Invariant: the functions have their former visibility, except between begin() and end().
class LibraryFunctions {
public:
    explicit LibraryFunctions(llvm::Module& module);
    // Makes those of them external that are internal now …
    void begin();
    // … and internal again. Removes those without a caller.
    void end();

private:
    llvm::Module& module_;
    std::vector<std::string> names_;
    std::vector<llvm::Function*> begun_;
};

}  // namespace rove::bitcode
