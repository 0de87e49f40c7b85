#include <cpuid.h>

#include "arch/arch.hpp"
#include "arch/x86_extensions.hpp"

// The variables that __builtin_cpu_supports reads. libgcc links them into each program; its shared library does not export them.
extern "C" {
extern std::uint32_t __cpu_model[4];      // NOLINT
extern std::uint32_t __cpu_features2[3];  // NOLINT
int __cpu_indicator_init();               // NOLINT
}

namespace rove::arch {
namespace {

bool has_waitpkg() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & (1U << 5U)) != 0;
}

// Which registers of a thread the system saves. 0: it does not report it.
std::uint64_t saved_registers() {
    std::array<unsigned, 4> of{};
    constexpr unsigned kSystemSays = 1U << 27U;
    if (__get_cpuid(1, &of[0], &of[1], &of[2], &of[3]) == 0 || (of[2] & kSystemSays) == 0) return 0;
    std::uint32_t low = 0, high = 0;
    asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32U | low;
}

bool is_set(const CpuidBit& extension) {
    std::array<unsigned, 4> of{};
    if (__get_cpuid_count(extension.leaf, extension.subleaf, &of[0], &of[1], &of[2], &of[3]) == 0) return false;
    return (of[static_cast<std::size_t>(extension.in)] >> extension.bit & 1U) != 0 &&
           (extension.saved == 0 || (saved_registers() & extension.saved) == extension.saved);
}

}  // namespace

const bool kHasWaitpkg = has_waitpkg();

// The compiler's function checks the system, too, because registers that it does not save cannot be used.
bool cpu_has(std::string_view extension) {
    __builtin_cpu_init();
#define ROVE_ASK(name) \
    if (extension == (name)) return __builtin_cpu_supports(name) != 0;
    ROVE_X86_EXTENSIONS(ROVE_ASK)
#undef ROVE_ASK
    const auto bit = std::ranges::find(kX86CpuidBits, extension, &CpuidBit::name);
    return bit != kX86CpuidBits.end() && is_set(*bit);
}

std::vector<Symbol> compiler_symbols() {
    return {{"__cpu_model", &__cpu_model},
            {"__cpu_features2", &__cpu_features2},
            {"__cpu_indicator_init", reinterpret_cast<void*>(&__cpu_indicator_init)}};
}

}  // namespace rove::arch
