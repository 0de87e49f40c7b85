#include "base/cpu.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>

#include "base/made_once.hpp"

namespace rove {
namespace {

constexpr std::string_view kPrefix = "rove.cpu.";
constexpr std::string_view kX86 = "x86_64";

// clang-format off
#define ROVE_X86_EXTENSIONS(EACH)                                                                                            \
    EACH("sse3") EACH("ssse3") EACH("sse4.1") EACH("sse4.2") EACH("sse4a") EACH("popcnt") EACH("aes") EACH("pclmul")         \
    EACH("avx") EACH("avx2") EACH("fma") EACH("fma4") EACH("xop") EACH("tbm") EACH("f16c") EACH("bmi") EACH("bmi2")          \
    EACH("lzcnt") EACH("movbe") EACH("adx") EACH("rdrnd") EACH("rdseed") EACH("sha") EACH("vaes") EACH("vpclmulqdq")         \
    EACH("gfni") EACH("avxvnni") EACH("avx512f") EACH("avx512cd") EACH("avx512vl") EACH("avx512bw") EACH("avx512dq")         \
    EACH("avx512ifma") EACH("avx512vbmi") EACH("avx512vbmi2") EACH("avx512vnni") EACH("avx512bitalg")                        \
    EACH("avx512vpopcntdq") EACH("avx512bf16") EACH("avx512vp2intersect")
// clang-format on

// Later ones, and others which the compiler's function does not know everywhere: the bit of CPUID that says so, and the registers of their own that the
// system must save for them (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID; volume 1, 13.1).
enum class Register : std::uint8_t { eax, ebx, ecx, edx };
struct Told {
    std::string_view name;
    std::uint32_t leaf, subleaf;
    Register in;
    unsigned bit;
    std::uint64_t saved = 0;  // bits of XCR0
};
constexpr std::uint64_t kAvx = 0x6, kAvx512 = 0xE6, kTiles = 0x60000, kMoreRegisters = 0x80000;
constexpr auto kX86Told = std::to_array<Told>({
    {"cx16", 1, 0, Register::ecx, 13},
    {"crc32", 1, 0, Register::ecx, 20},
    {"sahf", 0x80000001, 0, Register::ecx, 0},
    {"rtm", 7, 0, Register::ebx, 11},
    {"clflushopt", 7, 0, Register::ebx, 23},
    {"clwb", 7, 0, Register::ebx, 24},
    {"waitpkg", 7, 0, Register::ecx, 5},
    {"rdpid", 7, 0, Register::ecx, 22},
    {"movdiri", 7, 0, Register::ecx, 27},
    {"movdir64b", 7, 0, Register::ecx, 28},
    {"enqcmd", 7, 0, Register::ecx, 29},
    {"uintr", 7, 0, Register::edx, 5},
    {"serialize", 7, 0, Register::edx, 14},
    {"tsxldtrk", 7, 0, Register::edx, 16},
    {"amx-bf16", 7, 0, Register::edx, 22, kTiles},
    {"avx512fp16", 7, 0, Register::edx, 23, kAvx512},
    {"amx-tile", 7, 0, Register::edx, 24, kTiles},
    {"amx-int8", 7, 0, Register::edx, 25, kTiles},
    {"sha512", 7, 1, Register::eax, 0, kAvx},
    {"sm3", 7, 1, Register::eax, 1, kAvx},
    {"sm4", 7, 1, Register::eax, 2, kAvx},
    {"raoint", 7, 1, Register::eax, 3},
    {"cmpccxadd", 7, 1, Register::eax, 7},
    {"amx-fp16", 7, 1, Register::eax, 21, kTiles},
    {"avxifma", 7, 1, Register::eax, 23, kAvx},
    {"avxvnniint8", 7, 1, Register::edx, 4, kAvx},
    {"avxneconvert", 7, 1, Register::edx, 5, kAvx},
    {"amx-complex", 7, 1, Register::edx, 8, kTiles},
    {"avxvnniint16", 7, 1, Register::edx, 10, kAvx},
    {"usermsr", 7, 1, Register::edx, 15},
    {"avx10.1-256", 7, 1, Register::edx, 19, kAvx},
    {"avx10.1-512", 0x24, 0, Register::ebx, 18, kAvx512},
    // Intel APX, whose parts come together.
    {"egpr", 7, 1, Register::edx, 21, kMoreRegisters},
    {"push2pop2", 7, 1, Register::edx, 21, kMoreRegisters},
    {"ppx", 7, 1, Register::edx, 21, kMoreRegisters},
    {"ndd", 7, 1, Register::edx, 21, kMoreRegisters},
    {"ccmp", 7, 1, Register::edx, 21, kMoreRegisters},
    {"nf", 7, 1, Register::edx, 21, kMoreRegisters},
    {"cf", 7, 1, Register::edx, 21, kMoreRegisters},
});

constexpr auto kX86Extensions = [] {
#define ROVE_NAME(name) std::string_view(name),
    constexpr auto kAsked = std::to_array({ROVE_X86_EXTENSIONS(ROVE_NAME)});
#undef ROVE_NAME
    std::array<std::string_view, kAsked.size() + kX86Told.size()> all;
    std::ranges::transform(kX86Told, std::ranges::copy(kAsked, all.begin()).out, &Told::name);
    return all;
}();

#ifdef __x86_64__
constexpr std::string_view kHere = kX86;
using Extensions = std::unordered_map<std::string_view, bool>;
constinit MadeOnce<Extensions> asked;

// What the system saves of a thread's registers. 0: it does not say.
std::uint64_t saved_registers() {
    std::array<unsigned, 4> of{};
    constexpr unsigned kSystemSays = 1U << 27U;
    if (__get_cpuid(1, &of[0], &of[1], &of[2], &of[3]) == 0 || (of[2] & kSystemSays) == 0) return 0;
    std::uint32_t low = 0, high = 0;
    asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32U | low;
}

bool is_told(const Told& extension) {
    std::array<unsigned, 4> of{};
    if (__get_cpuid_count(extension.leaf, extension.subleaf, &of[0], &of[1], &of[2], &of[3]) == 0) return false;
    return (of[static_cast<std::size_t>(extension.in)] >> extension.bit & 1U) != 0 &&
           (extension.saved == 0 || (saved_registers() & extension.saved) == extension.saved);
}

// The compiler's function takes literals only. It asks the system, too, because registers that are not saved cannot be used.
Extensions* ask() {
    __builtin_cpu_init();
#define ROVE_ASKED(name) {name, __builtin_cpu_supports(name) != 0},
    auto* all = new Extensions{ROVE_X86_EXTENSIONS(ROVE_ASKED)};
#undef ROVE_ASKED
    for (const Told& each : kX86Told) all->emplace(each.name, is_told(each));
    return all;
}

bool is_here(std::string_view extension) {
    const Extensions& all = asked.get(ask);
    const auto found = all.find(extension);
    return found != all.end() && found->second;
}
#else
constexpr std::string_view kHere = "aarch64";
bool is_here(std::string_view) {
    return false;
}
#endif

}  // namespace

std::span<const std::string_view> cpu_extensions(std::string_view kind) {
    if (kind == kX86) return kX86Extensions;
    return {};
}

std::string cpu_import(std::string_view kind, const std::vector<std::string_view>& extensions) {
    std::string name = std::string(kPrefix).append(kind);
    char before = '.';
    for (const std::string_view each : extensions) {
        name += before;
        name += each;
        before = '+';
    }
    return name;
}

bool is_cpu_import(std::string_view import) {
    return import.starts_with(kPrefix);
}

std::string lacked_by_cpu(std::string_view import) {
    if (!is_cpu_import(import)) return {};
    import.remove_prefix(kPrefix.size());
    if (!import.starts_with(kHere) || !import.substr(kHere.size()).starts_with('.')) return {};
    import.remove_prefix(kHere.size() + 1);
    std::string lacked;
    while (!import.empty()) {
        const std::string_view extension = import.substr(0, import.find('+'));
        import.remove_prefix(std::min(import.size(), extension.size() + 1));
        if (!is_here(extension)) (lacked += lacked.empty() ? "" : ", ") += extension;
    }
    return lacked;
}

}  // namespace rove
