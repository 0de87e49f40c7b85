// Checks the assembly within code that travels. A directive of a few bytes may generate any number of bytes (.rept, .fill), read a file of
// the node's (.incbin), or make the linker write to a place without a check (.reloc). A name that is printed for an operand may contain
// such a directive, with characters around it that end the statement in which the name is printed.
#pragma once

#include "base/result.hpp"

namespace llvm {
class Module;
}

namespace rove::bitcode {

// unsupported: the assembly of a function, or the module's own, has a directive that does not travel; or assembly has operands, and something
// in the module has a name that is more than a word.
[[nodiscard]] Status check_assembly(const llvm::Module& module);

}  // namespace rove::bitcode
