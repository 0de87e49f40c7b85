// A Region in a separate mapping, which is unmapped when its owner is destroyed.
//
// Threads: any.
#pragma once

#include <sys/mman.h>

#include <memory>

#include "fabric/ring.hpp"

namespace rove::fabric {

struct UnmapRegion {
    void operator()(Region* region) const { munmap(region, sizeof(Region)); }
};
using MappedRegion = std::unique_ptr<Region, UnmapRegion>;

// Null: no memory.
[[nodiscard]] inline MappedRegion map_region(int flags, int file) {
    void* memory = mmap(nullptr, sizeof(Region), PROT_READ | PROT_WRITE, flags, file, 0);
    return MappedRegion(memory != MAP_FAILED ? static_cast<Region*>(memory) : nullptr);
}
// Memory that only this process uses.
[[nodiscard]] inline MappedRegion map_private_region() {
    return map_region(MAP_PRIVATE | MAP_ANONYMOUS, -1);
}
// Takes the page faults now, and not while the first frames are written. Kernels before 5.14 cannot do this; the faults then occur later.
inline void populate(void* begin, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
    (void)madvise(begin, bytes, MADV_POPULATE_WRITE);
#else
    (void)begin, (void)bytes;
#endif
}

}  // namespace rove::fabric
