// x86-64. arch.hpp describes each function.
//
// Threads: each function is of the thread that calls it. Invariant: a FloatControls never changes once it is made.
#pragma once

#include <x86intrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rove::arch {

inline constexpr std::string_view kName = "x86_64", kTriple = "x86_64-linux-gnu";

// __builtin_prefetch, compiled for any x86-64, fetches the line for reading only, and the store would still wait until the reader has given up
// its copy. Processors without prefetchw treat it as no operation.
inline void own_soon(std::byte* line) {
    __asm__ volatile("prefetchw %0" : : "m"(*line));
}

[[nodiscard]] constexpr std::size_t page_bytes() {
    return 4096;
}

// Instruction caches are coherent with data caches.
inline void code_written(std::byte* /*begin*/, std::byte* /*end*/) {}

inline void pause() {
    _mm_pause();
}

[[nodiscard]] inline std::uint64_t ticks() {
    return __rdtsc();
}

// WAITPKG: the core dozes until a line is written or a short time has passed. Without WAITPKG these functions use pause(). Constant: it is
// set when the library is loaded.
extern const bool kHasWaitpkg;
inline constexpr std::uint64_t kRestTicks = 2000;
inline constexpr unsigned kLightSleep = 1;  // C0.1: wakes fast

[[gnu::target("waitpkg")]] inline void doze(std::uint64_t ticks_long) {
    _tpause(kLightSleep, __rdtsc() + ticks_long);
}

template <typename Arrived>
[[gnu::target("waitpkg")]] void doze_until_written(const std::uint64_t& word, const Arrived& arrived) {
    const std::uint64_t until = __rdtsc() + kRestTicks;
    _umonitor(const_cast<std::uint64_t*>(&word));
    if (!arrived()) _umwait(kLightSleep, until);
}

inline void rest() {
    if (kHasWaitpkg)
        doze(kRestTicks);
    else
        pause();
}

inline void rest_briefly() {
    if (kHasWaitpkg)
        doze(kRestTicks / 16);
    else
        pause();
}

template <typename Arrived>
void rest_until_written(const std::uint64_t& word, const Arrived& arrived) {
    if (kHasWaitpkg)
        doze_until_written(word, arrived);
    else
        pause();
}

// MXCSR for float and double, the x87's state for long double. Nothing here can trap, whatever is unmasked or raised: no number is
// computed, and the x87's exceptions are cleared before an instruction that would wait for one.
class FloatControls {
public:
    FloatControls() noexcept {
        std::uint16_t x87 = 0;
        __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(vector_), "=m"(x87) : : "memory");
        if (x87 != kX87)
            __asm__ volatile("fnstenv %0" : "=m"(x87_.emplace()) : : "memory");  // and masks all of its traps
    }
    // MXCSR is written without being read: ldmxcsr takes a fraction of a nanosecond, stmxcsr 6 ns. If the x87's control word is standard, the
    // flags that the x87 has raised are kept, because reading them takes 4 ns.
    static void set_standard() noexcept {
        std::uint16_t x87 = 0;
        __asm__ volatile("ldmxcsr %1\n\tfnstcw %0" : "=m"(x87) : "m"(kVector) : "memory");
        if (x87 != kX87) __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(kX87) : "memory");
    }
    static void reset() noexcept {
        __asm__ volatile("fnclex\n\tfldcw %0\n\tldmxcsr %1" : : "m"(kX87), "m"(kVector) : "memory");
    }
    void restore() const noexcept {
        set_standard();
        if (x87_) __asm__ volatile("fldenv %0" : : "m"(*x87_) : "memory");
        __asm__ volatile("ldmxcsr %0" : : "m"(vector_) : "memory");
    }

private:
    static constexpr std::uint32_t kVector = 0x1F80;
    static constexpr std::uint16_t kX87 = 0x037F;

    std::uint32_t vector_;
    std::optional<std::array<std::byte, 28>> x87_;  // if it was not standard
};

}  // namespace rove::arch
