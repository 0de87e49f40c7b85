// The functions that a module lists to be run before its program begins and after it has ended.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <vector>

namespace rove::bitcode {

inline constexpr llvm::StringLiteral kConstructors = "llvm.global_ctors", kDestructors = "llvm.global_dtors";

struct Listed {
    unsigned place;          // its place in the list
    std::uint64_t priority;  // constructors run from the smallest on, destructors from the largest
    llvm::Constant* function;
    // A variable that the function makes, and without which it is not needed; null: none.
    llvm::GlobalVariable* variable;
};

// One of these lists, in its order. Entries without a function, which have no meaning, are left out.
[[nodiscard]] std::vector<Listed> listed(const llvm::Module& module, llvm::StringRef list);

}  // namespace rove::bitcode
