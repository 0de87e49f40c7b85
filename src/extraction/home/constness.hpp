// Whether the parameters of a function promise not to change what they point to.
#pragma once

#include <llvm/IR/InstrTypes.h>

#include <unordered_map>

namespace rove::bitcode {

// Threads: one at a time. Invariant: its answers do not depend on earlier questions; what it keeps only saves time. The program outlives it.
class Constness {
public:
    // All pointers, however many.
    static constexpr unsigned kAll = ~0U;
    // How many levels of pointers the parameter promises not to write through: 0 for `int&`, 1 for `const Object&`, 2 for `const int* const&`;
    // 0 as well if a pointer among them may be written through (`int* const&`), and if the function's name does not show which of its types
    // belongs to the argument.
    [[nodiscard]] unsigned of(const llvm::Function& callee, const llvm::CallBase& call, unsigned argument);
    // Whether the function may return the argument, or a part of what that points to: in the C library functions that search there do;
    // operators that return a stream return the argument.
    [[nodiscard]] static bool may_give_back(const llvm::Function& callee, unsigned argument);

private:
    std::unordered_map<const llvm::Use*, unsigned> known_;  // demangling takes longer than everything else
};

}  // namespace rove::bitcode
