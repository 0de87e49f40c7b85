#include "jit/lacks.hpp"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "arch/arch.hpp"
#include "bitcode/compiled.hpp"

namespace rove::bitcode {
namespace {

namespace jitlink = llvm::jitlink;
using llvm::orc::MemProt;
LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();

std::byte* page_of(std::byte* place, std::size_t page_bytes) {
    return place - reinterpret_cast<std::uintptr_t>(place) % page_bytes;
}

// Makes pages writable for its lifetime. They hold addresses, and other threads read them in that time.
class Writable {
public:
    // pages: room is reserved for all of them.
    explicit Writable(std::size_t page_bytes, std::size_t pages) : page_bytes_(page_bytes) { pages_.reserve(pages); }
    ~Writable() {
        for (std::byte* page : pages_) (void)mprotect(page, page_bytes_, PROT_READ);
    }
    Writable(const Writable&) = delete;
    [[nodiscard]] bool add(std::byte* page) {
        if (mprotect(page, page_bytes_, PROT_READ | PROT_WRITE) != 0) return false;
        pages_.push_back(page);
        return true;
    }

private:
    std::size_t page_bytes_;
    std::vector<std::byte*> pages_;
};

}  // namespace

LackedNames find_lacks(jitlink::LinkGraph& graph) {
    // An address of 8 bytes, which can be written later in one store. JITLink has this name for it on each instruction set.
    const auto is_address = [&graph](jitlink::Edge::Kind kind) {
        return llvm::StringRef(graph.getEdgeKindName(kind)) == "Pointer64";
    };
    LackedNames lacks;
    for (jitlink::Block* block : graph.blocks()) {
        constexpr MemProt none{};
        const MemProt protection = block->getSection().getMemProt();
        const bool is_code = (protection & MemProt::Exec) != none;
        const bool is_loaded = block->getSection().getMemLifetime() != llvm::orc::MemLifetime::NoAlloc;
        const bool is_writable = (protection & MemProt::Write) != none;
        const bool is_checked =
            block->getSection().getName() == ".eh_frame";  // checked once, before a name arrives (compile.cpp)
        for (jitlink::Edge& edge : block->edges()) {
            if (!edge.isRelocation() || edge.getTarget().getAddress().getValue() != kNowhere) continue;
            LackedName& lacked = lacks[edge.getTarget().getName().str()];
            if (is_address(edge.getKind()) && is_loaded && !is_code && !is_checked &&
                lacked.places.size() < kPlacesMax) {
                lacked.places.push_back({block->getFixupAddress(edge).toPtr<std::byte*>(), is_writable});
            } else {
                lacked.is_elsewhere = true;
                edge.setKind(jitlink::Edge::KeepAlive);
            }
        }
    }
    return lacks;
}

Status put_names(const LackedNames& lacks, const std::vector<std::pair<std::string_view, void*>>& names) {
    const std::size_t page_bytes = arch::page_bytes();
    const auto each_place = [&](const auto& what) {
        for (const auto& [name, address] : names)
            if (const auto lacked = lacks.find(name); lacked != lacks.end())
                for (const LackedName::Place& place : lacked->second.places) what(place, address);
    };
    std::vector<std::byte*> pages;  // a place may span two
    each_place([&](const LackedName::Place& place, void*) {
        if (place.is_writable) return;
        pages.push_back(page_of(place.at, page_bytes));
        pages.push_back(page_of(place.at + sizeof(std::uint64_t) - 1, page_bytes));
    });
    std::sort(pages.begin(), pages.end());
    pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
    Writable writable(page_bytes, pages.size());
    for (std::byte* page : pages)
        if (!writable.add(page))
            return fail(ErrorCode::overloaded, "no memory for the names that have come ({})", strerror(errno));
    each_place([](const LackedName::Place& place, void* address) {
        std::uint64_t value = 0;
        std::memcpy(&value, place.at, sizeof value);
        value += reinterpret_cast<std::uintptr_t>(address) - kNowhere;
        std::memcpy(place.at, &value, sizeof value);
    });
    return {};
}

}  // namespace rove::bitcode
