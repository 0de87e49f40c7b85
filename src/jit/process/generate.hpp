// Makes an object file for this machine's CPU from bitcode that another node has sent.
//
// LLVM expects bitcode of a compiler. A peer's may crash it, keep it busy for ever, or take all memory, so only an expendable process calls
// this (serve.hpp); a node asks that process (process.hpp).
#pragma once

#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "wire/image.hpp"

namespace rove::bitcode {

// The size of an object file: a package's slice has 64 MiB at most, and relocations and unwind tables are added to it. A node has the file
// in memory four times while it links.
inline constexpr std::size_t kObjectBytesMax = std::size_t{128} << 20;
// The size of the sections that are loaded: code, and zeros for as many statics as a node keeps, with the padding that aligns them.
inline constexpr std::size_t kLoadedBytesMax = kObjectBytesMax + wire::kNodeStaticBytesMax;
// The number of its sections. The linker records for each section which others it reaches, so its memory grows with the square of their
// number: 250 MiB for 3,000 (LLVM 19). Code that rove has built has some 20.
inline constexpr std::size_t kSectionsMax = 1024;
// The number of its symbols, local ones included. SQLite has 3,000.
inline constexpr std::size_t kSymbolsMax = std::size_t{1} << 18;
// The number of its names that can be looked up. A manifest lists 8,192 at most; constructors and anchors are added to these.
inline constexpr std::size_t kNamesMax = std::size_t{1} << 16;
inline constexpr std::size_t kNameBytesMax = std::size_t{8} << 20;

struct GenerateRequest {
    std::string name;  // for messages
    Bytes bitcode;     // one module; checked by LLVM's reader and verifier before it is used
    // Names that the package's image has: the module's own definitions of these are not used.
    std::vector<std::string> in_image;
};

struct Generated {
    ByteBuffer object;                      // ELF, relocatable
    std::vector<std::string> constructors;  // in the order in which they run
    std::vector<std::string> names;         // names that can be looked up, including those of constructors
    bool own_statics = false;               // it defines statics of the package that the image does not
};

// The CPU and the conventions of code that is linked into this process.
[[nodiscard]] Result<llvm::orc::JITTargetMachineBuilder> machine_here();

// unsupported: it is bitcode for other machines, or contains something that cannot travel. invalid: it is malformed. failed: LLVM's
// message.
[[nodiscard]] Result<Generated> generate(const GenerateRequest& request);

}  // namespace rove::bitcode
