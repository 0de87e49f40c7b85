// The first, cheap steps of optimising, on one function alone.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>

#include <unordered_set>

#include "bitcode/analyses.hpp"

namespace rove::bitcode {

// A function that many others reach is copied into each one's package: if it is simplified once in its source, it is smaller in every copy, and
// need not be simplified again there. 100 functions with containers: an eighth of the time of all.
//
// Threads: one at a time. Invariant: each function is simplified once, and nothing that was determined about others is used for it.
class FunctionSimplifier {
public:
    FunctionSimplifier();
    FunctionSimplifier(const FunctionSimplifier&) = delete;
    // A module that is compiled without exceptions marks each function as one that never throws, which is wrong: keep_unwindable() (shape.cpp)
    // removes the marks, and until then no optimiser may rely on them.
    [[nodiscard]] static bool without_exceptions(const llvm::Module& module) {
        return module.getFunction("rove_raise") != nullptr;
    }
    // Does nothing if the function has been simplified, is marked as not to be optimised, or was compiled without exceptions.
    void simplify(llvm::Function& function);

private:
    llvm::PassBuilder builder_;
    Analyses analyses_{builder_};
    llvm::FunctionPassManager passes_;
    std::unordered_set<const llvm::Function*> simplified_;
};

}  // namespace rove::bitcode
