// Bounds the memory that functions and values have freed and the C library of `rove node` keeps.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace rove::tools {

// The C library gives what is freed beyond 128 KiB back to the kernel, and a large string's pages are faulted in again each time, which
// takes longer than filling them. So large memory is kept for the next value, as much as this; what is free beyond it for 2 s
// is given back, 4 s later at most. Large enough for eight of the largest values.
inline constexpr std::int64_t kFreedBytesMax = 256LL << 20;
inline constexpr auto kFreedLook = std::chrono::milliseconds(250);
inline constexpr auto kFreedLookIdle = std::chrono::seconds(4);  // while the process has no more than that
inline constexpr std::size_t kFreedLooks = 8;                    // × 250 ms = 2 s

// Before any other thread starts.
void keep_large_memory();

// Threads: one.
class FreedMemory {
public:
    FreedMemory();
    // To be called again after the time that it returns: kFreedLook, or kFreedLookIdle. What was free at each of the last looks has not been
    // used in between: under load the values that come use it again and again, and nothing is given back.
    [[nodiscard]] std::chrono::milliseconds look();

private:
    // Pages in memory that hold nothing the C library has given out. Free memory whose pages were given back already is no part of it,
    // though the C library still counts it as free.
    std::int64_t floor_;                            // the least that this was: stacks, payloads in parts, code
    std::array<std::int64_t, kFreedLooks> free_{};  // beyond that, at the last looks
    std::size_t next_ = 0;
};

}  // namespace rove::tools
