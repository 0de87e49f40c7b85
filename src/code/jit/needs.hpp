// What each entry of a package cannot do without.
#pragma once

#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace rove::code::jit {

// The names that a prepared module declares, by who reaches them: first those of the package as a whole (its constructors, its exports, the first
// values of its statics), then those of each entry. What is declared as weak is needed by nobody.
[[nodiscard]] std::vector<std::vector<std::string>> needs_of(const llvm::Module& module,
                                                             const std::vector<std::string>& entries,
                                                             const std::vector<std::string>& exports);

}  // namespace rove::code::jit
