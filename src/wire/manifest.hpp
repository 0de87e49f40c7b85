// A package's manifest: the part of it that its digest covers, small enough to travel with every slice.
//
// The byte layout is documented in docs/package-format.md, with a worked example.
//
// Invariant: a manifest that decode_manifest() has returned is within the bounds below, and its names are names (is_name).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "rove/forms.hpp"

namespace rove::wire {

[[nodiscard]] std::string_view to_string(Forms form);  // the form of a slice

enum class Compression : std::uint8_t { none = 0, zstd = 1 };

// One form of the package for one target.
struct Slice {
    std::string triple;
    Forms form = Forms::image;  // image or bitcode, not both
    Compression compression = Compression::none;
    std::uint32_t raw_bytes = 0;     // uncompressed
    std::uint32_t stored_bytes = 0;  // size as it is sent and as it is in the file
    SliceHash hash;                  // hash of the stored bytes, so that a slice is verified before it is decompressed
    friend bool operator==(const Slice&, const Slice&) = default;
};

struct Manifest {
    std::string name;
    std::uint16_t abi = 0;
    bool interface = false;
    // Its code stays loaded for as long as the node lives, because an address of its functions, constants or labels may be kept somewhere
    // after a call has ended (bitcode/package/pinning.hpp).
    bool pinned = false;
    std::vector<std::string> entries;
    std::vector<std::string> exports;       // an interface's names, functions and data alike
    std::vector<std::string> imports;       // names that the node must provide
    std::vector<std::string> dependencies;  // bare sonames
    // A row for the package as a whole (its constructors, its exports, its statics' initial values), then one for each entry: a bit for each
    // import that it needs, the lowest bit of a byte first. If a node lacks an import, the entries that do not need it still run; an import that
    // no row needs is weak, and null there. Empty: every entry needs all imports.
    ByteBuffer needs;
    std::vector<Slice> slices;

    [[nodiscard]] const Slice* find(std::string_view triple, Forms form) const;
    [[nodiscard]] bool whole_needs(std::size_t import) const { return row_needs(0, import); }
    [[nodiscard]] bool entry_needs(std::size_t entry, std::size_t import) const { return row_needs(1 + entry, import); }
    // Whether the entry needs any of the imports in `of`, which has a bit for each, as a row of `needs`; empty: no imports.
    [[nodiscard]] bool entry_needs_any(std::size_t entry, Bytes of) const;
    // Whether the package or any entry needs the import; otherwise it is weak.
    [[nodiscard]] bool is_needed(std::size_t import) const;
    [[nodiscard]] std::size_t needs_row_bytes() const { return (imports.size() + 7) / 8; }
    friend bool operator==(const Manifest&, const Manifest&) = default;

private:
    [[nodiscard]] bool row_needs(std::size_t row, std::size_t import) const;
};

// Bounds of a manifest; a manifest beyond them is refused.
inline constexpr std::size_t kManifestBytesMax = 64 * 1024;      // ~1000 names of 60 bytes; one code frame carries it
inline constexpr std::size_t kSliceBytesMax = 64 * 1024 * 1024;  // a large C++ module; 1/4 of the default code budget
inline constexpr std::size_t kNamesMax = 8192;  // in all lists together: at six bytes each they fill a manifest
inline constexpr std::size_t kEntriesMax =
    1024;  // entries among them; a node makes an id and a handle of each, in 0.5 ms for all
inline constexpr std::size_t kNameBytesMax = 1024;  // long enough for mangled template names
// Names are printed, looked up and compared: printable ASCII without spaces, 1 to kNameBytesMax characters.
[[nodiscard]] bool is_name(std::string_view text);
inline constexpr std::size_t kSlicesMax = 64;

[[nodiscard]] ByteBuffer encode(const Manifest& manifest);
// unsupported: the manifest exceeds one of these bounds; the message says which, and by how much.
[[nodiscard]] Status check_bounds(const Manifest& manifest);
// Checks every length, count and name (printable, no '/' in dependencies), and that no bytes are left over.
[[nodiscard]] Result<Manifest> decode_manifest(Bytes bytes);

}  // namespace rove::wire
