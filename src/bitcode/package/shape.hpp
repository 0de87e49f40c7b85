// Giving a joined module the shape that both forms of code need; each step is one function, in the order of prepare().
#pragma once

#include <llvm/IR/Module.h>

#include <string>
#include <vector>

#include "base/result.hpp"

namespace rove::bitcode {

// Statics of C++'s library that must be the process's own (base/library_statics.hpp) become declarations.
void use_library_statics(llvm::Module& module);

// The functions marked ROVE_ENTRY, in source order. Drops the marks, llvm.used, comdats and section names.
[[nodiscard]] Result<std::vector<std::string>> take_entries(llvm::Module& module);
// Checks that nodes can call the entries: void (rove_here*, const void*, size_t). LLVM's types do not tell the two pointers apart.
[[nodiscard]] Status check_entries(const llvm::Module& module, const std::vector<std::string>& entries);
// Makes everything internal but the entries and, of an interface, what it defines for others; gives the latter's names.
[[nodiscard]] std::vector<std::string> restrict_to(llvm::Module& module, const std::vector<std::string>& entries,
                                                   bool interface);
// Forgets which CPU the sources were compiled for.
void generalise_cpu(llvm::Module& module);
// Code that is compiled without exceptions, C above all, says of each of its functions that nothing is thrown through it. Natively each file
// is compiled by itself, and a callback's exception passes. Here it is optimised together with its callers, whose handlers would go, and its
// functions would have no table to be unwound by. Takes that back; optimisation finds out again where it is true.
void keep_unwindable(llvm::Module& module);
// Makes every writable variable external: those that are exported under their names, the others as rove.static.n.
void free_statics(llvm::Module& module, const std::vector<std::string>& exports, std::size_t& statics);
// Makes code reach whatever it does not define, and writable variables, through its table of addresses.
void reach_through_got(llvm::Module& module);
// Why the module cannot be an image, or nothing.
[[nodiscard]] std::string image_obstacle(const llvm::Module& module);

}  // namespace rove::bitcode
