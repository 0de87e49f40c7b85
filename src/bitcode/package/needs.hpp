// The names and the CPU extensions that each entry of a package needs.
#pragma once

#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace rove::bitcode {

// The names that a prepared module declares, by the code that reaches them: first those of the package as a whole (its constructors, its
// exports, the initial values of its statics), then those of each entry. A name that is declared weak is needed by none.
[[nodiscard]] std::vector<std::vector<std::string>> needs_of(const llvm::Module& module,
                                                             const std::vector<std::string>& entries,
                                                             const std::vector<std::string>& exports);

// The CPU extensions that the package and each entry need, in the same order, one name each at most (base/cpu.hpp): those for which the entry
// itself was compiled, and for the package as a whole those of constructors and exports. Functions that they call do not count: code that
// chooses among several versions of a function checks the CPU first.
[[nodiscard]] std::vector<std::vector<std::string>> cpu_needs_of(const llvm::Module& module,
                                                                 const std::vector<std::string>& entries,
                                                                 const std::vector<std::string>& exports);

}  // namespace rove::bitcode
