// What assembly within code that travels may say. A directive of a few bytes may stand for any number of bytes (.rept, .fill), for a file of
// the node's (.incbin), or for a place that the linker writes to without looking (.reloc).
#pragma once

#include "base/result.hpp"

namespace llvm {
class Module;
}

namespace rove::bitcode {

// unsupported: the assembly of a function, or the module's own, has a directive that does not travel.
[[nodiscard]] Status check_assembly(const llvm::Module& module);

}  // namespace rove::bitcode
