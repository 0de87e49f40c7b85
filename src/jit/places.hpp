// Checks that the linker writes within what it links: JITLink trusts every place that a relocation names (LLVM 19), in the node's process.
#pragma once

#include <llvm/Support/Error.h>

namespace llvm::jitlink {
class LinkGraph;
}

namespace rove::bitcode {

// An error if the linker would read or write outside of a section.
[[nodiscard]] llvm::Error check_places(llvm::jitlink::LinkGraph& graph);

}  // namespace rove::bitcode
