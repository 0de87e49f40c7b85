// Turns thread-local variables into ordinary code and statics, so that an image can have them, and shares them with the bitcode.
#pragma once

#include <llvm/IR/Module.h>

#include "base/result.hpp"

namespace rove::bitcode {

// Each use of a thread-local variable becomes a call of libgcc's `__emutls_get_address` with the variable's control object, which holds its
// size and initial value. The control object is a static; that of a variable that the module only declares is declared under the name that
// a compiler with emulated thread-locals would give it: `__emutls_v.<name>`.
[[nodiscard]] Status lower_thread_locals(llvm::Module& module);

}  // namespace rove::bitcode
