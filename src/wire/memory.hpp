// Arguments and results of the memory functions that every node has (docs/frames.md, "Functions that every node has").
#pragma once

#include <cstddef>
#include <cstdint>

namespace rove::wire {

// The result of an allocation: the key, and how a peer on the same machine maps the memory and checks that it is the right file.
struct MemoryPlace {
    std::uint64_t key = 0;  // unguessable: a peer that has it may use the memory
    std::uint64_t bytes = 0;
    std::int64_t pid = 0;  // 0: it cannot be mapped
    std::int64_t file = -1;
    std::uint64_t device = 0, inode = 0;
};
static_assert(sizeof(MemoryPlace) == 48);

// The argument of a put and of a get. A put's data follow it.
struct MemoryPart {
    std::uint64_t key = 0, offset = 0, bytes = 0;
};
static_assert(sizeof(MemoryPart) == 24);

struct MemoryCopy {
    MemoryPart from;
    std::uint64_t to_key = 0, to_offset = 0;
    std::uint64_t to_node = 0;
};
static_assert(sizeof(MemoryCopy) == 48);

// The largest transfer in one call.
inline constexpr std::size_t kTransferBytesMax = 16UL * 1024 * 1024;

}  // namespace rove::wire
