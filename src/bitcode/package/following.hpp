// What the parts have in common that follow addresses through a package's code.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Module.h>

namespace rove::bitcode {

inline constexpr unsigned kPointerBits = 64;

// Calls the function with each call of a function of the package. False: other code calls it, which passes nothing of the package, or a
// call is unknown.
bool at_calls(const llvm::Function& function, llvm::function_ref<void(const llvm::CallBase&)> give);

// The difference of two addresses: a number, as `end - begin` is.
[[nodiscard]] bool is_distance(const llvm::Value& value);
// Whether an address as a number is only compared, or used for distances to it.
[[nodiscard]] bool is_measured_only(const llvm::User& address);

// Functions of the C library that copy, if they are called as such: with -fno-builtin, and checked by -D_FORTIFY_SOURCE.
[[nodiscard]] bool copies(const llvm::Function& callee);

}  // namespace rove::bitcode
