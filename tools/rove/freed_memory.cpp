#include "freed_memory.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace rove::tools {
namespace {

// One arena, whose end grows as far as needed and keeps up to 64 MiB. Others are made of heaps of 64 MiB: a value of 31 MiB that does not
// fit what is left of one gets a heap of its own, which is given back to the kernel with the value, so each of its pages is faulted in for
// every call. What is free between values that are in use is not bounded by that, whatever its size.
constexpr int kArenas = 1;
constexpr int kFreeAtEndBytes = 64 << 20;
constexpr int kOwnMappingBytes = 32 << 20;  // no more may be asked for here

// Pages of this process in memory that no file and no other process has; nothing: the kernel does not say.
std::int64_t private_bytes() {
    std::FILE* const file = std::fopen("/proc/self/statm", "re");
    if (file == nullptr) return 0;
    long long all = 0, resident = 0, shared = 0;
    const bool read = std::fscanf(file, "%lld %lld %lld", &all, &resident, &shared) == 3;
    std::fclose(file);
    return read ? (resident - shared) * sysconf(_SC_PAGESIZE) : 0;
}

// The number of these that hold nothing that the C library has given out.
std::int64_t idle_bytes(const struct mallinfo2& heap) {
    return private_bytes() - static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
}

}  // namespace

void keep_large_memory() {
    mallopt(M_ARENA_MAX, kArenas);
    mallopt(M_MMAP_THRESHOLD, kOwnMappingBytes);
    mallopt(M_TRIM_THRESHOLD, kFreeAtEndBytes);
}

FreedMemory::FreedMemory() : floor_(idle_bytes(mallinfo2())) {}

std::chrono::milliseconds FreedMemory::look() {
    std::int64_t& free = free_[next_++ % free_.size()];
    free = 0;
    const bool holds_much = private_bytes() > kFreedBytesMax;
    if (holds_much) {  // quick to ask; the rest visits all that is free
        const struct mallinfo2 heap = mallinfo2();
        const std::int64_t idle = idle_bytes(heap);
        floor_ = std::min(floor_, idle);
        free = std::min(static_cast<std::int64_t>(heap.fordblks), idle - floor_);
    }
    if (*std::min_element(free_.begin(), free_.end()) > kFreedBytesMax) {
        malloc_trim(0);
        free_ = {};
        floor_ = idle_bytes(mallinfo2());
    }
    return holds_much ? kFreedLook : kFreedLookIdle;
}

}  // namespace rove::tools
