// Refuses code on which LLVM would give up or use up all memory.
#pragma once

#include "base/result.hpp"

namespace llvm {
class Module;
}

namespace rove::bitcode {

// unsupported: LLVM would give up on something in a function; the message names the function and the remedy. Or the module's constants and
// variables with a value are larger than a slice may be. For an optimised module with its data layout.
[[nodiscard]] Status check_compilable(const llvm::Module& module);
// unsupported: its other variables are larger than a node's statics, and a node would need memory for them.
[[nodiscard]] Status check_zeros(const llvm::Module& module);

}  // namespace rove::bitcode
