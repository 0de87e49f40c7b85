// Checks, when code is built, for code that would build and not run on a node.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace llvm {
class Module;
}

namespace rove::bitcode {

// unsupported: the module has something that only a linker and a loader of whole programs provide; the message names it and the remedy. For
// all of a compiled file, and for functions taken out of a program.
[[nodiscard]] Status check_runnable(const llvm::Module& module);
// The same for its sections. To be called before the sections' names are removed.
[[nodiscard]] Status check_sections(const llvm::Module& module);
// The names that such a module defines.
[[nodiscard]] std::set<std::string> defined_names(const llvm::Module& module);
// All words of the module's assembly: names, and also instructions and registers.
[[nodiscard]] std::set<std::string> words_of_assembly(const llvm::Module& module);
// unsupported: assembly names something that an object imports and its code does not: its meaning is unknown, or it has another name in a
// package. `defined` by the module as the compiler made it; `declared` by the prepared one, with the words of its assembly.
[[nodiscard]] Status check_imports(const std::vector<std::string>& imports, const std::set<std::string>& defined,
                                   const std::vector<std::string>& declared, const std::set<std::string>& words);
// unsupported: a prepared module declares a function of a sanitizer's runtime.
[[nodiscard]] Status check_sanitizers(const std::vector<std::string>& declared);

}  // namespace rove::bitcode
