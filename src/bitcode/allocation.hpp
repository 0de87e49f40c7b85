// The functions of C and C++ that allocate memory, which a program may replace by its own.
//
// Shipped code uses the node's. libstdc++ is on both sides of them: what it allocates there, as the text of an exception, inline code frees
// here, and the other way round; C's library gives memory away by strdup() and others. So a replacement stays where it was written, and
// what travels only declares the function.
#pragma once

#include <llvm/IR/Module.h>

#include <string>
#include <vector>

namespace rove::bitcode {

// A definition of `operator new`, `operator delete` or one of their forms, which the standard lets a program replace, or of malloc() or
// another of C's, which the C library does. with_malloc: the program replaces malloc(); then all that has a name of its allocator, and its
// strdup() and the like, belong to that. Without, they are functions as others, unless they have the C library's types.
[[nodiscard]] bool replaces_allocation(const llvm::GlobalValue& value, bool with_malloc);

// Its declaration in another module.
[[nodiscard]] llvm::Function* declare_allocation(const llvm::GlobalValue& replaced, llvm::Module& into);

// Makes the module's replacements declarations, and gives their names as they are written in C++.
[[nodiscard]] std::vector<std::string> leave_out_allocation(llvm::Module& module);

}  // namespace rove::bitcode
