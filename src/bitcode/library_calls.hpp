// The calls of the C library that LLVM's code generator makes by itself.
#pragma once

#include <llvm/IR/Instruction.h>
#include <llvm/IR/Module.h>

#include <set>
#include <string>

namespace rove::bitcode {

// The function that the code generator may call for an instruction ("roundf" for llvm.round.f32, "memcpy" for llvm.memcpy), by the rule by which
// LLVM names its intrinsics. Empty: it calls none. Whether it calls the function depends on the CPU, and whether the C library has one of that
// name must be checked.
[[nodiscard]] std::string library_call_of(const llvm::Instruction& instruction);

// Those of all functions of a module.
[[nodiscard]] std::set<std::string> library_calls_of(const llvm::Module& module);

}  // namespace rove::bitcode
