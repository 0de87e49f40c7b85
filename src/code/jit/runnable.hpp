// What builds cleanly and could not run where it travels to, said at the build.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace llvm {
class Module;
}

namespace rove::code::jit {

// unsupported: the module has something that only a linker and a loader of whole programs provide; names it and the remedy. For a module as
// the compiler made it.
[[nodiscard]] Status check_runnable(const llvm::Module& module);
// What such a module defines.
[[nodiscard]] std::set<std::string> defined_names(const llvm::Module& module);
// unsupported: one of them has become an import, because assembly names it, and has another name in a package.
[[nodiscard]] Status check_imports(const std::vector<std::string>& imports, const std::set<std::string>& defined);

}  // namespace rove::code::jit
