// The extensions that not every x86-64 CPU has, and how to detect them. Packages for x86-64 are built on other machines, too, so the
// names are separate from what a machine's own instruction set provides (arch.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rove::arch {

// The extensions that __builtin_cpu_supports() of every compiler knows. It accepts literals only.
// clang-format off
#define ROVE_X86_EXTENSIONS(EACH)                                                                                            \
    EACH("sse3") EACH("ssse3") EACH("sse4.1") EACH("sse4.2") EACH("sse4a") EACH("popcnt") EACH("aes") EACH("pclmul")         \
    EACH("avx") EACH("avx2") EACH("fma") EACH("fma4") EACH("xop") EACH("tbm") EACH("f16c") EACH("bmi") EACH("bmi2")          \
    EACH("lzcnt") EACH("movbe") EACH("adx") EACH("rdrnd") EACH("rdseed") EACH("sha") EACH("vaes") EACH("vpclmulqdq")         \
    EACH("gfni") EACH("avxvnni") EACH("avx512f") EACH("avx512cd") EACH("avx512vl") EACH("avx512bw") EACH("avx512dq")         \
    EACH("avx512ifma") EACH("avx512vbmi") EACH("avx512vbmi2") EACH("avx512vnni") EACH("avx512bitalg")                        \
    EACH("avx512vpopcntdq") EACH("avx512bf16") EACH("avx512vp2intersect")
// clang-format on

// Extensions that __builtin_cpu_supports() may not know: their CPUID bit, and the state that the system must save for them
// (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID; volume 1, 13.1. AMD64 Architecture Programmer's Manual,
// volume 3, appendix E, for leaves from 0x80000001 on).
enum class Register : std::uint8_t { eax, ebx, ecx, edx };
struct CpuidBit {
    std::string_view name;
    std::uint32_t leaf, subleaf;
    Register in;
    unsigned bit;
    std::uint64_t saved = 0;  // bits of XCR0
};
inline constexpr std::uint64_t kAvx = 0x6, kAvx512 = 0xE6, kTiles = 0x60000, kMoreRegisters = 0x80000;
inline constexpr auto kX86CpuidBits = std::to_array<CpuidBit>({
    {"cx16", 1, 0, Register::ecx, 13},
    {"crc32", 1, 0, Register::ecx, 20},
    {"sahf", 0x80000001, 0, Register::ecx, 0},
    {"xsave", 1, 0, Register::ecx, 26, kAvx},
    {"fsgsbase", 7, 0, Register::ebx, 0},
    {"sgx", 7, 0, Register::ebx, 2},
    {"invpcid", 7, 0, Register::ebx, 10},
    {"pku", 7, 0, Register::ecx, 4},
    {"shstk", 7, 0, Register::ecx, 7},
    {"kl", 7, 0, Register::ecx, 23},
    {"cldemote", 7, 0, Register::ecx, 25},
    {"pconfig", 7, 0, Register::edx, 18},
    {"prefetchi", 7, 1, Register::edx, 14},
    {"hreset", 7, 1, Register::eax, 22},
    {"xsaveopt", 0xD, 1, Register::eax, 0, kAvx},
    {"xsavec", 0xD, 1, Register::eax, 1, kAvx},
    {"xsaves", 0xD, 1, Register::eax, 3, kAvx},
    {"ptwrite", 0x14, 0, Register::ebx, 4},
    {"widekl", 0x19, 0, Register::ebx, 2},
    {"prfchw", 0x80000001, 0, Register::ecx, 8},
    {"lwp", 0x80000001, 0, Register::ecx, 15},
    {"mwaitx", 0x80000001, 0, Register::ecx, 29},
    {"3dnowa", 0x80000001, 0, Register::edx, 30},
    {"3dnow", 0x80000001, 0, Register::edx, 31},
    {"clzero", 0x80000008, 0, Register::ebx, 0},
    {"rdpru", 0x80000008, 0, Register::ebx, 4},
    {"wbnoinvd", 0x80000008, 0, Register::ebx, 9},
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
    // Intel APX, whose parts exist only together.
    {"egpr", 7, 1, Register::edx, 21, kMoreRegisters},
    {"push2pop2", 7, 1, Register::edx, 21, kMoreRegisters},
    {"ppx", 7, 1, Register::edx, 21, kMoreRegisters},
    {"ndd", 7, 1, Register::edx, 21, kMoreRegisters},
    {"ccmp", 7, 1, Register::edx, 21, kMoreRegisters},
    {"nf", 7, 1, Register::edx, 21, kMoreRegisters},
    {"cf", 7, 1, Register::edx, 21, kMoreRegisters},
});

// All extensions.
inline constexpr auto kX86Extensions = [] {
#define ROVE_NAME(name) std::string_view(name),
    constexpr auto kAsked = std::to_array({ROVE_X86_EXTENSIONS(ROVE_NAME)});
#undef ROVE_NAME
    std::array<std::string_view, kAsked.size() + kX86CpuidBits.size()> all;
    std::ranges::transform(kX86CpuidBits, std::ranges::copy(kAsked, all.begin()).out, &CpuidBit::name);
    return all;
}();

}  // namespace rove::arch
