// Whether code reads or writes a variable, or only passes on where it is.
#pragma once

namespace llvm {
class GlobalVariable;
}

namespace rove::bitcode {

// False: nothing in its module reads or writes it, so that its value means nothing there. Libraries have such objects of empty classes in
// their headers. Where a pointer to it goes out of sight it counts as touched.
[[nodiscard]] bool is_touched(const llvm::GlobalVariable& variable);

}  // namespace rove::bitcode
