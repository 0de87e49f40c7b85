// The functions of C and C++ that allocate memory, which a program may replace by its own.
//
// Shipped code uses the node's functions. libstdc++ allocates memory that inline code here frees, such as the text of an exception, and
// frees memory that it allocates; the C library returns allocated memory from strdup() and others. So a replacement is not copied from its
// program, and code that travels only declares the function.
#pragma once

#include <llvm/IR/Module.h>

#include <string>
#include <vector>

namespace rove::bitcode {

// Whether this is a definition of `operator new`, `operator delete` or one of their forms, which the standard lets a program replace, or of
// malloc() or another function of C's, which the C library does. with_malloc: the program replaces malloc(); then all functions with names
// of its allocator, and its strdup() and the like, belong to that. Otherwise these are ordinary functions, unless they have the C library's
// types.
[[nodiscard]] bool replaces_allocation(const llvm::GlobalValue& value, bool with_malloc);

// Its declaration in another module.
[[nodiscard]] llvm::Function* declare_allocation(const llvm::GlobalValue& replaced, llvm::Module& into);

// Makes the module's replacements declarations, and returns their names as they are written in C++.
[[nodiscard]] std::vector<std::string> leave_out_allocation(llvm::Module& module);

}  // namespace rove::bitcode
