// Gives a joined module the shape that both forms of code need; each step is one function, in the order of prepare().
#pragma once

#include <llvm/IR/Module.h>

#include <string>
#include <vector>

#include "base/result.hpp"

namespace rove::bitcode {

// Makes statics of C++'s library that must be the process's own (base/library_statics.hpp) declarations.
void use_library_statics(llvm::Module& module);

// Returns the functions marked ROVE_ENTRY, in source order. Removes the marks, llvm.used, comdats and section names.
[[nodiscard]] Result<std::vector<std::string>> take_entries(llvm::Module& module);
// Checks that nodes can call the entries: void (rove_here*, const void*, size_t). LLVM's types do not distinguish the two pointers.
[[nodiscard]] Status check_entries(const llvm::Module& module, const std::vector<std::string>& entries);
// Makes everything internal except the entries and the definitions that an interface has for others; returns the names of the latter.
[[nodiscard]] std::vector<std::string> restrict_to(llvm::Module& module, const std::vector<std::string>& entries,
                                                   bool interface);
// Removes the CPU for which the sources were compiled.
void generalise_cpu(llvm::Module& module);
// Code that is compiled without exceptions, above all C, declares each of its functions as one through which nothing is thrown. Natively
// each file is compiled by itself, and a callback's exception passes. Here it is optimised together with its callers, whose handlers would
// be removed, and its functions would have no unwind table. Removes these declarations; optimisation determines again where they are true.
void keep_unwindable(llvm::Module& module);
// clang marks the bodies of OpenMP regions `norecurse`, although several threads run one at the same time. To LLVM the mark means that a
// variable which only this function uses, and writes first, may become a local one, if it is internal; here all variables are. Removes the
// marks; optimisation determines again where they are true.
void forget_norecurse(llvm::Module& module);
// Makes every writable variable external: those that are exported under their names, the others as rove.static.n.
void free_statics(llvm::Module& module, const std::vector<std::string>& exports, std::size_t& statics);
// Makes code reach names that it does not define, and writable variables, through its table of addresses.
void reach_through_got(llvm::Module& module);
// Why the module cannot be an image, or nothing.
[[nodiscard]] std::string image_obstacle(const llvm::Module& module);

}  // namespace rove::bitcode
