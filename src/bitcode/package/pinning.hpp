// Whether a package's code must stay loaded, because an address in it may be kept somewhere after a call has ended.
//
// Code that is evicted and loaded again has other addresses: kept addresses of its functions, labels and constants (string literals above
// all) would dangle. A use that cannot be followed counts as keeping; so code may stay that could be evicted, but never the other way
// round.
#pragma once

#include <llvm/IR/Module.h>

namespace rove::bitcode {

// Whether the code of a module in its final shape must stay loaded (wire::Manifest::pinned).
[[nodiscard]] bool must_stay(const llvm::Module& module);

}  // namespace rove::bitcode
