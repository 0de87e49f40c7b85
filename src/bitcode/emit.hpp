// LLVM's optimiser and writers, for functions taken out of programs and for packages.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace rove::bitcode {

// A generic CPU of the target, for position-independent code.
[[nodiscard]] Result<std::unique_ptr<llvm::TargetMachine>> target_machine(const std::string& triple);
// Removes internal functions and variables that are not reachable from kept ones, before checks that only travelling code has to pass.
void leave_out_unreached(llvm::Module& module);
void optimise(llvm::Module& module, llvm::TargetMachine& machine);
[[nodiscard]] ByteBuffer write_bitcode(const llvm::Module& module);
[[nodiscard]] Digest digest_of_bitcode(const llvm::Module& module);
// Changes the module, which is unusable afterwards.
[[nodiscard]] Result<ByteBuffer> write_object(llvm::Module& module, llvm::TargetMachine& machine);
// The names that objects need from elsewhere, sorted; including library calls that the code generator adds (memcpy).
[[nodiscard]] Result<std::vector<std::string>> undefined_names(const std::vector<Bytes>& objects);

}  // namespace rove::bitcode
