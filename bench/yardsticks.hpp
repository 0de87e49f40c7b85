// A machine's own limits, in a few lines of plain C++ and nothing of Rove: two threads on the two cores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/machine.hpp"

namespace rove::bench {

// One way of a cache line from core to core: half the median round trip of one word, ns.
[[nodiscard]] double cache_line_ns(const Cores& cores);

// A thread that sleeps in the kernel on the node's core, woken by a datagram from ours after 10 ms: median ns until it is seen to
// run. What any wake-up costs here, Rove's included.
[[nodiscard]] double kernel_wake_ns(const Cores& cores, unsigned wakes);

enum class RingWork { increment, sum };
// Frames per second through a ring of 1 MiB with one writer and one reader: 64-byte lines, the number of the frame in each
// frame's first word, stored last; the reader adds the payload's first word to a counter (increment), or all words (sum).
[[nodiscard]] double raw_ring_per_second(const Cores& cores, RingWork work, std::size_t payload_bytes,
                                         std::uint64_t frames);

}  // namespace rove::bench
