// Names that are missing when code is linked, and that it gets later.
//
// Code reaches names of other code through an address in memory (a place in the GOT, a pointer in a constant), so nothing is linked again: the
// address is written into those places. Until then they hold kNowhere.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLink.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace rove::bitcode {

// The address of a missing name: too far away to be reached by its distance, and too large for an instruction, so that JITLink leaves the
// place in the GOT unchanged. With a null address, as a missing weak name has, it might change it into a call.
inline constexpr std::uint64_t kNowhere = std::uint64_t{1} << 62U;

struct LackedName {
    struct Place {
        std::byte* at = nullptr;  // 8 bytes: kNowhere plus the distance from the name that the code expects there
        bool is_writable = false;
    };
    std::vector<Place> places;
    bool is_elsewhere = false;  // in the code itself, or not as an address of 8 bytes: put() cannot write it
};
using LackedNames = std::map<std::string, LackedName, std::less<>>;

// The missing names of a graph whose addresses are known and not yet written. A place that put() cannot write later is not written at all: the
// entries that need it cannot run, and the others can.
[[nodiscard]] LackedNames find_lacks(llvm::jitlink::LinkGraph& graph);

// Implements CompiledModule::put.
[[nodiscard]] Status put_names(const LackedNames& lacks, const std::vector<std::pair<std::string_view, void*>>& names);

}  // namespace rove::bitcode
