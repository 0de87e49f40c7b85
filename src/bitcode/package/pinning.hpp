// Whether a package's code must stay where it is, because an address into it may still be somewhere after a call has ended.
//
// Code that is evicted and loaded again has other addresses: those of its functions, labels and constants (string literals above all) would
// dangle in whatever had kept them. What cannot be followed counts as keeping; so code may stay that could go, and never the other way.
#pragma once

#include <llvm/IR/Module.h>

namespace rove::bitcode {

// Whether the code of a module in its final shape must stay loaded (wire::Manifest::pinned).
[[nodiscard]] bool must_stay(const llvm::Module& module);

}  // namespace rove::bitcode
