// The machines that code travels to, one row each: what must be known of a machine to make code for it anywhere. src/arch has what this process
// needs of the machine that it runs on.
#pragma once

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace rove {

struct Target {
    std::string_view arch;        // its kind of CPU, as ELF, GCC and LLVM name it: "x86_64"
    std::string_view triple;      // the kind of CPU and the system, as packages name them
    std::string_view debian;      // its name in Debian
    std::string_view cpu;         // LLVM's name of the CPU for which code that travels is made
    std::string_view intrinsics;  // the beginning of the names of LLVM's intrinsics for it
    bool is_tiny;            // LLVM's tiny code model: in its small one, code works at one offset within a page only
    std::uint16_t machine;   // its number in ELF
    std::uint32_t relative;  // ELF's relocation to an address in the file itself …
    std::array<std::uint32_t, 3> addresses;  // … and those to a symbol's address
    std::array<std::string_view, 2> flags;   // for clang; empty: none

    [[nodiscard]] constexpr bool is_address(std::uint32_t relocation) const {
        return std::ranges::find(addresses, relocation) != addresses.end();
    }
};

inline constexpr std::array<Target, 2> kTargets{{
    {.arch = "x86_64",
     .triple = "x86_64-linux-gnu",
     .debian = "amd64",
     .cpu = "x86-64",
     .intrinsics = "llvm.x86.",
     .is_tiny = false,
     .machine = EM_X86_64,
     .relative = R_X86_64_RELATIVE,
     .addresses = {R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, R_X86_64_64},
     .flags = {}},
    {.arch = "aarch64",
     .triple = "aarch64-linux-gnu",
     .debian = "arm64",
     .cpu = "generic",
     .intrinsics = "llvm.aarch64.",
     .is_tiny = true,
     .machine = EM_AARCH64,
     .relative = R_AARCH64_RELATIVE,
     .addresses = {R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT, R_AARCH64_ABS64},
     .flags = {"-mcmodel=tiny", "-mno-outline-atomics"}},
}};

// Null: code is made for no such machine.
[[nodiscard]] constexpr const Target* target_of_arch(std::string_view arch) {
    const auto* const found = std::ranges::find(kTargets, arch, &Target::arch);
    return found != kTargets.end() ? found : nullptr;
}
[[nodiscard]] constexpr const Target* target_of(std::string_view triple) {
    const auto* const found = std::ranges::find(kTargets, triple, &Target::triple);
    return found != kTargets.end() ? found : nullptr;
}
[[nodiscard]] constexpr const Target* target_of_machine(std::uint16_t machine) {
    const auto* const found = std::ranges::find(kTargets, machine, &Target::machine);
    return found != kTargets.end() ? found : nullptr;
}

}  // namespace rove
