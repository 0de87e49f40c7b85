// A Region, or the memory of a board, in a mapping of its own, which is unmapped when its owner is destroyed.
//
// Threads: any.
#pragma once

#include <sys/mman.h>

#include <memory>

#include "fabric/board.hpp"
#include "fabric/ring.hpp"

namespace rove::fabric {

template <typename T>
struct Unmap {
    void operator()(T* memory) const { munmap(memory, sizeof(T)); }
};
template <typename T>
using Mapped = std::unique_ptr<T, Unmap<T>>;
using MappedRegion = Mapped<Region>;
using MappedBoard = Mapped<BoardMemory>;

// Null: no memory.
template <typename T>
[[nodiscard]] Mapped<T> map_memory(int flags, int file) {
    void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, flags, file, 0);
    return Mapped<T>(memory != MAP_FAILED ? static_cast<T*>(memory) : nullptr);
}
// Memory that only this process uses.
[[nodiscard]] inline MappedRegion map_private_region() {
    return map_memory<Region>(MAP_PRIVATE | MAP_ANONYMOUS, -1);
}
// The part of each ring whose pages are there before the first frame, which may be code. The others come when they are first written.
inline constexpr std::size_t kPopulatedBytes = kLinesAtFirst * wire::kLineBytes;

// Takes the page faults now, and not while the first frames are written. Kernels before 5.14 cannot do this; the faults then occur later.
// Precondition: `begin` is the beginning of a page.
inline void populate_pages(void* begin, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
    (void)madvise(begin, bytes, MADV_POPULATE_WRITE);
#else
    (void)begin, (void)bytes;
#endif
}

void populate(Region& region);
inline void populate(BoardMemory& board) {
    populate_pages(&board, sizeof board);
}

// Gives the pages back in which lines of a ring are, up to a number of lines from its beginning, but for those that hold a line that is kept, or
// anything else of the region.
void free_pages_of(std::byte* ring, std::uint64_t lines, KeptLines kept, int advice);

}  // namespace rove::fabric
