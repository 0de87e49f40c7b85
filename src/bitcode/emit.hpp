// LLVM's optimiser and writers, for what is taken out of programs and what packages are made of.
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

// The target of a generic CPU, for position-independent code.
[[nodiscard]] Result<std::unique_ptr<llvm::TargetMachine>> target_machine(const std::string& triple);
// Removes internal functions and variables that nothing kept reaches, before checks that only what travels has to pass.
void leave_out_unreached(llvm::Module& module);
void optimise(llvm::Module& module, llvm::TargetMachine& machine);
[[nodiscard]] ByteBuffer write_bitcode(const llvm::Module& module);
[[nodiscard]] Digest digest_of_bitcode(const llvm::Module& module);
// Changes the module, which cannot be used for anything else afterwards.
[[nodiscard]] Result<ByteBuffer> write_object(llvm::Module& module, llvm::TargetMachine& machine);
// The names that objects need from elsewhere, sorted; including library calls that the code generator adds (memcpy).
[[nodiscard]] Result<std::vector<std::string>> undefined_names(const std::vector<Bytes>& objects);

}  // namespace rove::bitcode
