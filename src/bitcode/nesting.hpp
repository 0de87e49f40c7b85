// How deep bitcode may nest. LLVM goes down types, constants and metadata by recursion, and a few hundred kilobytes of bitcode may nest deep
// enough to leave the stack of the thread that reads it (faults.hpp). What is refused here is found without recursion.
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
// A line of code in which each instruction takes what the one before it gives, through whichever blocks: what a macro writes out has some
// thousands. LLVM goes along it by recursion: its code generator, where it hoists out of loops, and others. 170 to 220 bytes a step were
// measured, 11 MB in all.
inline constexpr std::size_t kChainMax = 50'000;
// Loops, one within the other: people write five. LLVM's memory for them goes with the square of that and its time beyond: for 1,000 it
// takes more than a minute.
inline constexpr std::size_t kLoopsNestedMax = 250;
// Constants that one constant is made of, each counted as often as it is used. LLVM goes to each of them as often, so a few hundred bytes of
// bitcode in which each constant is made of the one before twice would keep it for ever. What compilers make uses hardly any twice.
inline constexpr std::size_t kConstantPartsMax = 4'000'000;
// Parameters of one function that have attributes of their own: LLVM's reader makes a place for each number up to the largest.
inline constexpr std::uint32_t kParametersMax = 65'536;
// Pieces of metadata of bitcode that a peer has sent. A piece may hold the next one, so this bounds their nesting, too; what prepare() makes
// has some thousands of them in a megabyte, because debug information stays at home.
inline constexpr std::size_t kMetadataMax = 65'536;

// Before LLVM reads it. invalid: types nest too deep, attributes are of a parameter beyond all, or it is no bitcode; with `of_peer` also:
// there is too much metadata.
[[nodiscard]] Status check_nesting(Bytes bitcode, const std::string& name, bool of_peer);
// Before LLVM verifies it. invalid: constants nest too deep or have too many parts; loops nest too deep; or instructions of one function do,
// each of which takes what one before it gives.
[[nodiscard]] Status check_nesting(const llvm::Module& module, const std::string& name);

}  // namespace rove::bitcode
