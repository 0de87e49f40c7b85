// What each entry of a package cannot do without.
#pragma once

#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace rove::bitcode {

// The names that a prepared module declares, by who reaches them: first those of the package as a whole (its constructors, its exports, the first
// values of its statics), then those of each entry. What is declared as weak is needed by nobody.
[[nodiscard]] std::vector<std::vector<std::string>> needs_of(const llvm::Module& module,
                                                             const std::vector<std::string>& entries,
                                                             const std::vector<std::string>& exports);

// What they need of the CPU, likewise, by one name each at most (base/cpu.hpp): the instructions that the entry itself was compiled for, and
// as a whole those of constructors and exports. What they call may be for another CPU: who chooses among several versions asks for the CPU
// first.
[[nodiscard]] std::vector<std::vector<std::string>> cpu_needs_of(const llvm::Module& module,
                                                                 const std::vector<std::string>& entries,
                                                                 const std::vector<std::string>& exports);

}  // namespace rove::bitcode
