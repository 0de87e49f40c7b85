// One address for each thing, whichever form of the code runs.
//
// A package's bitcode is compiled while its image runs, and takes over the image's statics. The image may have stored addresses of its
// functions, constants and labels in them, or in memory that they point to; a second copy of these has other addresses, which no longer
// compare equal, and a label of one copy has no meaning in the other. So everything that has an address that the code could keep or compare
// is an *anchor*: it has a name that both forms know, and the bitcode uses the image's.
#pragma once

#include <llvm/IR/Module.h>

#include <set>
#include <string_view>

#include "base/result.hpp"
#include "bitcode/compiled.hpp"

namespace rove::bitcode {

// Gives each anchor that has no external name yet (entries and exports do) the name rove.anchor.n.
void name_anchors(llvm::Module& module);
// Whether a function's labels are used as values, as in `goto *next`.
[[nodiscard]] bool has_label_values(const llvm::Function& function);

// Turns everything that the image has already into declarations: statics, exported variables, constants that are anchors, and the functions
// that hold addresses of labels, their own or others'. Of other functions the module keeps its own code for calling, while their addresses
// are the image's. failed: labels of the image are held by something for which it has no name.
[[nodiscard]] Status borrow_from_image(llvm::Module& module, const std::set<std::string_view>& in_image);
// The address in the image of an undefined name of such a module, or null.
[[nodiscard]] void* find_borrowed(std::string_view name, const NamesInImage& in_image);

}  // namespace rove::bitcode
