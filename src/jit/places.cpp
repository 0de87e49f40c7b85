#include "jit/places.hpp"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>

namespace rove::bitcode {
namespace {

// An upper bound of the bytes that the linker writes at an edge of that kind. The kinds of all instruction sets have similar names.
std::size_t written_at(llvm::StringRef kind) {
    if (kind.contains("64")) return 8;
    if (kind == "Pointer8" || kind == "Delta8") return 1;
    if (kind == "Pointer16" || kind == "Delta16") return 2;
    return 4;
}

// How many bytes before an edge of that kind belong to its instruction. The linker reads these, and may replace the instruction by a shorter
// one (x86-64), whose place may begin a byte earlier.
std::size_t before(llvm::StringRef kind) {
    if (!kind.ends_with("Relaxable")) return 0;
    return kind.contains("REX") ? 3 : 2;
}

}  // namespace

llvm::Error check_places(llvm::jitlink::LinkGraph& graph) {
    for (const llvm::jitlink::Block* block : graph.blocks())
        for (const llvm::jitlink::Edge& edge : block->edges()) {
            if (!edge.isRelocation()) continue;
            const llvm::StringRef kind = graph.getEdgeKindName(edge.getKind());
            const std::size_t size = block->isZeroFill() ? 0 : block->getSize();  // these have no bytes
            const bool is_within = edge.getOffset() <= size && written_at(kind) <= size - edge.getOffset();
            if (is_within && before(kind) <= edge.getOffset()) continue;
            return llvm::make_error<llvm::StringError>("a relocation outside of its section",
                                                       llvm::inconvertibleErrorCode());
        }
    return llvm::Error::success();
}

}  // namespace rove::bitcode
