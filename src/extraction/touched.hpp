// Whether code reads or writes a variable, or only passes its address on.
#pragma once

namespace llvm {
class GlobalVariable;
}

namespace rove::bitcode {

// False: no code in its module reads or writes it, so that its value has no meaning there. Libraries have such objects of empty classes in
// their headers. If a pointer to it cannot be followed, it counts as touched.
[[nodiscard]] bool is_touched(const llvm::GlobalVariable& variable);

}  // namespace rove::bitcode
