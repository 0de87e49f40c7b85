#include "fabric/mapped_region.hpp"

#include <algorithm>

#include "arch/arch.hpp"

namespace rove::fabric {
namespace {

std::byte* page_of(std::byte* at) {
    return at - reinterpret_cast<std::uintptr_t>(at) % arch::page_bytes();
}

}  // namespace

// A ring begins within a page, which it shares with what is before it.
void populate(Region& region) {
    for (std::byte* const ring : region.rings) {
        std::byte* const begin = page_of(ring);
        populate_pages(begin, static_cast<std::size_t>(ring + kPopulatedBytes - begin));
    }
}

void free_pages_of(std::byte* ring, std::uint64_t lines, KeptLines kept, int advice) {
    const std::size_t page = arch::page_bytes();
    std::byte* const begin = page_of(ring + page - 1);
    std::byte* const end = std::min(page_of(ring + lines * wire::kLineBytes + page - 1), page_of(ring + kRingBytes));
    const auto page_of_line = [ring](std::uint64_t position) {
        return page_of(ring + position % kRingLines * wire::kLineBytes);
    };
    const auto free = [advice](std::byte* from, std::byte* to) {
        if (from < to) (void)madvise(from, static_cast<std::size_t>(to - from), advice);
    };
    free(begin, std::min(page_of_line(kept.first), end));
    free(std::max(begin, page_of_line(kept.last) + page), end);
}

}  // namespace rove::fabric
