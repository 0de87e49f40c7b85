// Functions of a package that the C library has as well: a strcmp of its own.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/IR/ValueHandle.h>
#include <llvm/Target/TargetMachine.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rove::bitcode {

// LLVM treats a function as the C library's (it computes calls of it, or removes them) if it has the name and the type and is external. In its
// program the function was external; in a package it is internal. So these functions are external while the optimiser runs.
//
// The code generator also calls such functions by their names, for intrinsics: `round` for llvm.round, which is clang's form of a call of
// round(). In its program such a call reaches the program's own round(). So each function that may be called like this keeps its name: a hidden
// function of that name calls the internal one. And a node that compiles the bitcode for its CPU, which may have an instruction for it, must
// not return another result than the image: so these intrinsics become calls, except of memcpy() and the like.
//
// Made before the package's functions become internal; the module outlives it. Threads: those of the module's context, one at a time.
// Invariant: the functions have their former visibility, except between begin() and end().
class LibraryFunctions {
public:
    explicit LibraryFunctions(llvm::Module& module);
    // Makes those of them external that are internal now. To be called before anything unreached is removed: intrinsics are no uses …
    void begin();
    // … and internal again. Removes those that neither code nor the code generator calls.
    void end();
    // Makes calls of the intrinsics for which this machine calls one of the functions. To be called after end(), for code that compiles. invalid: it
    // does not, for which the module's context has a reason.
    [[nodiscard]] Status settle(llvm::TargetMachine& machine);
    // The names under which the code generator finds functions of the package. To be called after settle().
    [[nodiscard]] std::vector<std::string> called() const;

private:
    struct Called {
        llvm::Function *by_name, *own;
    };
    using Names = std::set<std::string>;
    // Leaves only names that the code generator may call, except these.
    void drop_uncalled(const Names& not_called = {});

    llvm::Module& module_;
    std::vector<std::string> names_;
    std::vector<llvm::WeakVH> begun_;
    std::map<std::string, Called> called_;
};

}  // namespace rove::bitcode
