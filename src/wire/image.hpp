// An image: machine code that is loaded by copying it, applying a few relocations and making it executable.
//
// Two segments. The *block* is [GOT | code | read-only data], position independent, page-aligned in memory. The *data*
// segment holds the writable statics; code reaches it through GOT slots only, so the loader places it anywhere and keeps
// it when the code is evicted. The byte layout is documented in docs/image-format.md, with a worked example.
//
// Invariant: in an Image that decode_image() has returned, every offset is within its segment, and every import is one of the manifest's. What
// the code does is not checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace rove::wire {

enum class Segment : std::uint8_t { block = 0, data = 1 };

// Stores an 8-byte address at `offset` of segment `where`: the start of segment `of`, or the import `import`, plus addend.
struct Relocation {
    enum class Kind : std::uint8_t { block = 0, data = 1, import = 2 };
    Segment where = Segment::block;
    Kind kind = Kind::block;
    std::uint32_t offset = 0;
    std::uint32_t import = 0;  // index into Manifest::imports
    std::int64_t addend = 0;
    friend bool operator==(const Relocation&, const Relocation&) = default;
};

// A named place in the image: an entry point, an exported name of an interface, or a place to which the bitcode form binds by
// name: a writable static, or an anchor, which is a function or constant whose address the code may keep or compare.
struct Symbol {
    enum class Kind : std::uint8_t { entry = 0, exported = 1, static_ = 2, anchor = 3 };
    Kind kind = Kind::entry;
    Segment segment = Segment::block;
    std::uint32_t index =
        0;  // into Manifest::entries or ::exports; n of "rove.static.n" for static_, of "rove.anchor.n" for anchor
    std::uint32_t offset = 0;
    friend bool operator==(const Symbol&, const Symbol&) = default;
};

struct Image {
    ByteBuffer block;
    ByteBuffer data;                    // the initialised part of the data segment
    std::uint32_t data_bytes = 0;       // whole data segment, zero-filled after `data`
    std::uint32_t data_alignment = 16;  // a power of two, at most kAlignmentMax
    std::uint32_t eh_frame_offset = 0;  // offset in the block; eh_frame_bytes 0: none
    std::uint32_t eh_frame_bytes = 0;
    std::uint32_t init_array_offset = 0;  // offset in the block: 8-byte function addresses, relocated like any other
    std::uint32_t init_array_count = 0;
    std::uint32_t fini_array_offset = 0;
    std::uint32_t fini_array_count = 0;
    std::vector<Relocation> relocations;
    std::vector<Symbol> symbols;
    friend bool operator==(const Image&, const Image&) = default;
};

// The largest writable statics of one package; uninitialised ones cost nothing to send.
inline constexpr std::uint32_t kImageDataBytesMax = 64U * 1024 * 1024;
// The most writable statics that a node keeps for all packages, unless CodeOptions::static_bytes_max says otherwise. Bitcode whose
// zero-initialised variables need more is not compiled.
inline constexpr std::size_t kNodeStaticBytesMax = std::size_t{256} * 1024 * 1024;
// The largest alignment of code and variables that travel: a page, because that is how the segments are aligned in memory.
inline constexpr std::uint32_t kAlignmentMax = 4096;

// The prefix of the names of writable statics in the bitcode form, which are numbered from 0.
inline constexpr std::string_view kStaticPrefix = "rove.static.";
// The prefix of anchors that are not entries or exports.
inline constexpr std::string_view kAnchorPrefix = "rove.anchor.";
// The name that replaces __dso_handle in shipped C++, in both forms: under its own name the linker would define it, as the address at which
// an ELF file would begin.
inline constexpr std::string_view kDsoHandle = "rove.dso_handle";
// The import of code that has thread-local variables: libgcc's function for their addresses (bitcode/package/thread_locals.hpp).
inline constexpr const char* kGetThreadLocal = "__emutls_get_address";
// Precedes the name of a thread-local variable that such code does not define: the name that gcc and clang give its control object with
// -femulated-tls. A library that was compiled without that option has none.
inline constexpr std::string_view kThreadLocalPrefix = "__emutls_v.";

[[nodiscard]] ByteBuffer encode(const Image& image);
// Checks every offset against its segment, every import index against import_count, alignment, counts, and that no bytes are left over.
[[nodiscard]] Result<Image> decode_image(Bytes bytes, std::size_t import_count);

}  // namespace rove::wire
