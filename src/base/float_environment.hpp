// How this thread computes with floating-point numbers: rounding, traps, and what becomes of denormals.
#pragma once

#include <cstdint>
#include <optional>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace rove {

#if defined(__x86_64__)

struct FloatControls {
    std::uint32_t vector = 0x1F80;  // MXCSR, for float and double
    std::uint16_t x87 = 0x037F;     // for long double

    static FloatControls now() noexcept {
        FloatControls read;
        __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(read.vector), "=m"(read.x87));
        return read;
    }
    // The flags that operations have raised stay.
    void set() const noexcept {
        constexpr std::uint32_t kFlags = 0x3F;
        const std::uint32_t with_flags = (vector & ~kFlags) | (now().vector & kFlags);
        __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(with_flags), "m"(x87));
    }
    // Whether they are as C sets out. 1.5 ns, where reading MXCSR takes 5: its effects are looked at instead, by sums that come out
    // otherwise where it rounds in another direction or drops denormals. Traps show in the x87's word alone, where feenableexcept() sets
    // them as well.
    static bool are_standard() noexcept {
        alignas(16) static constexpr float kLeft[] = {0x1p-149F, 1, 1, 0},
                                           kRight[] = {0x1p-149F, 0x1p-25F, -0x1p-26F, 0},
                                           kSums[] = {0x1p-148F, 1, 1, 0};
        std::uint16_t x87 = 0;
        __asm__ volatile("fnstcw %0" : "=m"(x87));
        __m128 sums = _mm_load_ps(kLeft);
        __asm__ volatile("addps %1, %0" : "+x"(sums) : "m"(kRight));
        const __m128i same = _mm_cmpeq_epi32(_mm_castps_si128(sums), _mm_castps_si128(_mm_load_ps(kSums)));
        return x87 == FloatControls{}.x87 && _mm_movemask_epi8(same) == 0xFFFF;
    }
};

#elif defined(__aarch64__)

struct FloatControls {
    std::uint64_t fpcr = 0;

    static FloatControls now() noexcept {
        FloatControls read;
        __asm__ volatile("mrs %0, fpcr" : "=r"(read.fpcr));
        return read;
    }
    void set() const noexcept { __asm__ volatile("msr fpcr, %0" : : "r"(fpcr)); }
    static bool are_standard() noexcept { return now().fpcr == 0; }
};

#else
#error "how is the rounding mode read on this instruction set?"
#endif

// While this lives: rounding to nearest, no traps, denormals kept, as C sets out. Then as it was before, whatever was set in between.
class StandardFloatEnvironment {
public:
    // is_standard: it is known to be so already.
    explicit StandardFloatEnvironment(bool is_standard) noexcept {
        if (is_standard || FloatControls::are_standard()) return;
        outer_ = FloatControls::now();
        FloatControls{}.set();
    }
    ~StandardFloatEnvironment() {
        if (outer_)
            outer_->set();
        else if (!FloatControls::are_standard())
            FloatControls{}.set();
    }
    StandardFloatEnvironment(const StandardFloatEnvironment&) = delete;
    StandardFloatEnvironment& operator=(const StandardFloatEnvironment&) = delete;

private:
    std::optional<FloatControls> outer_;
};

}  // namespace rove
