// Bounds how deep bitcode may nest. LLVM visits types, constants and metadata by recursion, and a few hundred kilobytes of bitcode may nest
// deep enough to overflow the stack of the thread that reads it (faults.hpp). The checks here use no recursion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace llvm {
class Module;
}

namespace rove::bitcode {

// The tuple of 900 members, the most that clang's own bound on templates allows, is a type that nests some 1,800 deep. For each level LLVM
// takes less than 1 KiB of stack, of which there are 64 MiB.
inline constexpr std::size_t kNestingMax = 10'000;
// The longest chain of instructions in which each uses the result of the one before it, across blocks: the expansion of a macro may have
// some thousands. LLVM follows it by recursion: its code generator, where it hoists out of loops, and others. 170 to 220 bytes a step were
// measured, 11 MB in all.
inline constexpr std::size_t kChainMax = 50'000;
// Nested loops: people write five. LLVM's memory for them grows with the square of their number and its time faster: for 1,000 it takes
// more than a minute.
inline constexpr std::size_t kLoopsNestedMax = 250;
// The parts of one constant, each counted as often as it is used. LLVM visits each of them as often, so a few hundred bytes of bitcode in
// which each constant uses the one before twice would keep it busy for ever. Compilers use hardly any part twice.
inline constexpr std::size_t kConstantPartsMax = 4'000'000;
// Parameters of one function that have attributes: LLVM's reader allocates a place for each number up to the largest.
inline constexpr std::uint32_t kParametersMax = 65'536;
// Pieces of metadata of bitcode that a peer has sent. A piece may contain the next one, so this bounds their nesting, too; prepare() makes
// some thousands of them in a megabyte, because debug information does not travel.
inline constexpr std::size_t kMetadataMax = 65'536;

// To be called before LLVM reads it. invalid: types nest too deep, attributes are of a parameter beyond the bound, or it is no bitcode;
// with `of_peer` also: there is too much metadata.
[[nodiscard]] Status check_nesting(Bytes bitcode, const std::string& name, bool of_peer);
// To be called before LLVM verifies it. invalid: constants nest too deep or have too many parts; loops nest too deep; or a chain of
// instructions in one function is too long.
[[nodiscard]] Status check_nesting(const llvm::Module& module, const std::string& name);

}  // namespace rove::bitcode
