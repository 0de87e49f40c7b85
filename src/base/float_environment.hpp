// How this thread computes with floating-point numbers: rounding, traps, and what becomes of denormals.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

namespace rove {

#if defined(__x86_64__)

// What a thread's arithmetic was when this was made: MXCSR for float and double, the x87's state for long double. Nothing here can trap,
// whatever is unmasked or raised: no number is computed, and the x87's exceptions are cleared before an instruction that would wait for one.
class FloatControls {
public:
    FloatControls() noexcept {
        std::uint16_t x87 = 0;
        __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(vector_), "=m"(x87) : : "memory");
        if (x87 != kX87)
            __asm__ volatile("fnstenv %0" : "=m"(x87_.emplace()) : : "memory");  // and masks all of its traps
    }
    // To be as C sets out. MXCSR is written without a look at it: ldmxcsr takes a fraction of a nanosecond, stmxcsr 6 ns. The flags that
    // the x87 has raised stay where it is standard: looking at them takes 4 ns.
    static void set_standard() noexcept {
        std::uint16_t x87 = 0;
        __asm__ volatile("ldmxcsr %1\n\tfnstcw %0" : "=m"(x87) : "m"(kVector) : "memory");
        if (x87 != kX87) __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(kX87) : "memory");
    }
    // The same, and nothing is raised: of a thread that begins.
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
    std::optional<std::array<std::byte, 28>> x87_;  // where it was otherwise
};

#elif defined(__aarch64__)

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

#else
#error "how is the rounding mode set on this instruction set?"
#endif

// While this lives, code runs here that has nothing to do with what ran before, be it the node's or somebody else's: with rounding to nearest, no
// traps and denormals kept, as C sets out. What that sets of it ends with this.
class StandardFloatEnvironment {
public:
    // on_own_thread: of Rove's own. Such a thread computes so whenever it runs nobody else's code. Any other gets back what was its own.
    explicit StandardFloatEnvironment(bool on_own_thread) noexcept {
        if (on_own_thread) return;
        outer_.emplace();
        FloatControls::set_standard();
    }
    ~StandardFloatEnvironment() {
        if (outer_)
            outer_->restore();
        else
            FloatControls::set_standard();
    }
    StandardFloatEnvironment(const StandardFloatEnvironment&) = delete;
    StandardFloatEnvironment& operator=(const StandardFloatEnvironment&) = delete;

private:
    std::optional<FloatControls> outer_;
};

// A thread of Rove's own: it computes as C sets out, whatever the thread that makes it has set and would hand on.
template <typename Work>
[[nodiscard]] std::thread start_thread(Work work) {
    return std::thread([work = std::move(work)]() mutable {
        FloatControls::reset();
        work();
    });
}

}  // namespace rove
