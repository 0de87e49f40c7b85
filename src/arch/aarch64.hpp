// AArch64. arch.hpp describes each function.
//
// Threads: each function is of the thread that calls it. Invariant: a FloatControls never changes once it is made.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rove::arch {

inline constexpr std::string_view kName = "aarch64", kTriple = "aarch64-linux-gnu";

inline void own_soon(std::byte* line) {
    __builtin_prefetch(line, 1, 3);
}

// 4, 16 or 64 KiB, as the kernel was built.
[[nodiscard]] inline std::size_t page_bytes() {
    return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

inline void code_written(std::byte* begin, std::byte* end) {
    __builtin___clear_cache(reinterpret_cast<char*>(begin), reinterpret_cast<char*>(end));
}

inline void pause() {
    __asm__ volatile("yield" ::: "memory");
}

[[nodiscard]] inline std::uint64_t ticks() {
    std::uint64_t value = 0;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
}

inline void rest() {
    pause();
}

inline void rest_briefly() {
    pause();
}

// WFE sleeps until the exclusive monitor that LDXR has set is cleared by a write to the line, or the kernel's event stream (every 100 us at
// most) ends it.
template <typename Arrived>
void rest_until_written(const std::uint64_t& word, const Arrived& arrived) {
    std::uint64_t value = 0;
    __asm__ volatile("ldxr %0, [%1]" : "=r"(value) : "r"(&word) : "memory");
    if (arrived())
        __asm__ volatile("clrex" ::: "memory");
    else
        __asm__ volatile("wfe" ::: "memory");
}

class FloatControls {
public:
    FloatControls() noexcept { __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control_), "=r"(status_)); }
    static void set_standard() noexcept {
        std::uint64_t control = 0;
        __asm__ volatile("mrs %0, fpcr" : "=r"(control));
        if (control != 0) __asm__ volatile("msr fpcr, xzr" : : : "memory");
    }
    static void reset() noexcept { __asm__ volatile("msr fpcr, xzr\n\tmsr fpsr, xzr" : : : "memory"); }
    void restore() const noexcept {
        __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(control_), "r"(status_) : "memory");
    }

private:
    std::uint64_t control_, status_;
};

}  // namespace rove::arch
