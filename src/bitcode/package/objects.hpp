// Object files for the functions that a package shares with others, each made once.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bitcode/shared_objects.hpp"

namespace rove::bitcode {

// Cuts each of these functions out of the module into an object of its own, in the module's order. An object that was made of the same code is
// used again; others are made, and kept in `made`. Functions are not cut out if other code than their callers knows their names or labels, or if
// they refer to something that a separate object cannot name. Afterwards the module can only be used for its own object.
// diagnostics: where the module's context reports errors; invalid: it has reported some.
[[nodiscard]] Result<std::vector<std::shared_ptr<const SharedObject>>> take_out(
    llvm::Module& module, llvm::TargetMachine& machine, const std::vector<llvm::Function*>& functions,
    const std::string& diagnostics, SharedObjects& made);

}  // namespace rove::bitcode
