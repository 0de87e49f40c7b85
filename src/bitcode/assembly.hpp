// What assembly within code that travels may say. A directive of a few bytes may stand for any number of bytes (.rept, .fill), for a file of
// the node's (.incbin), or for a place that the linker writes to without looking (.reloc). A name that is printed in an operand's place may
// hold such a directive, with bytes around it that end what it is printed in.
#pragma once

#include "base/result.hpp"

namespace llvm {
class Module;
}

namespace rove::bitcode {

// unsupported: the assembly of a function, or the module's own, has a directive that does not travel; or assembly has operands, and something
// in the module a name that is more than a word.
[[nodiscard]] Status check_assembly(const llvm::Module& module);

}  // namespace rove::bitcode
