// The functions of C++ that allocate memory, which a program may replace by its own.
//
// Shipped code uses the node's. libstdc++ is on both sides of them: what it allocates there, as the text of an exception, inline code frees
// here, and the other way round. So a replacement stays where it was written, and what travels only declares the function.
#pragma once

#include <llvm/IR/Module.h>

#include <string>
#include <vector>

namespace rove::code::jit {

// `operator new`, `operator delete` and their forms, by their mangled names: all that the standard lets a program replace.
[[nodiscard]] bool is_allocation(llvm::StringRef name);

// Its declaration in another module.
[[nodiscard]] llvm::Function* declare_allocation(const llvm::GlobalValue& replaced, llvm::Module& into);

// Makes the module's replacements declarations, and gives their names as they are written in C++.
[[nodiscard]] std::vector<std::string> leave_out_allocation(llvm::Module& module);

}  // namespace rove::code::jit
