#include "wire/manifest.hpp"

#include <zstd.h>

#include <algorithm>

namespace rove::wire {
namespace {

constexpr std::array<std::byte, 4> kMagic{std::byte{'R'}, std::byte{'V'}, std::byte{'M'}, std::byte{'1'}};
constexpr std::uint8_t kFlagInterface = 1;
constexpr std::uint8_t kFlagPinned = 2;
constexpr std::uint8_t kFlagNeeds = 4;
constexpr std::uint8_t kFlagCompressedNeeds = 8;
// Rows of more bytes are compressed: entries of one package need much the same.
constexpr std::size_t kPlainNeedsMax = kManifestBytesMax / 4;

void put_names(Writer& out, const std::vector<std::string>& names) {
    out.number(static_cast<std::uint16_t>(names.size()));
    for (const std::string& name : names) out.text(name);
}

// `left`: how many more names the manifest may have.
Result<std::vector<std::string>> take_names(Reader& in, std::string_view what, std::size_t& left) {
    const auto count = in.number<std::uint16_t>();
    if (count > left)
        return fail(ErrorCode::invalid,
                    "package manifest: with its {} {} it has more than {} names, the most it may; split the package",
                    count, what, kNamesMax);
    left -= count;
    std::vector<std::string> names;
    names.reserve(count);
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
        const std::string_view name = in.text();
        if (in.ok() && !is_name(name))
            return fail(ErrorCode::invalid, "package manifest: one of the {} is no name", what);
        names.emplace_back(name);
    }
    // Sorted and not hashed, because a peer that knows the hash could choose names that collide.
    std::vector<std::string_view> sorted(names.begin(), names.end());
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); in.ok() && twice != sorted.end())
        return fail(ErrorCode::invalid, "package manifest: '{}' stands twice among the {}", *twice, what);
    return names;
}

ByteBuffer compressed(const ByteBuffer& rows) {
    ByteBuffer packed(ZSTD_compressBound(rows.size()));
    constexpr int kThorough = 12;
    packed.resize(ZSTD_compress(packed.data(), packed.size(), rows.data(), rows.size(), kThorough));
    return packed;
}

// Empty if the data does not decompress to that many bytes.
ByteBuffer take_compressed(Reader& in, std::size_t bytes) {
    const Bytes packed = in.take(in.number<std::uint32_t>());
    ByteBuffer rows(bytes);
    if (ZSTD_decompress(rows.data(), rows.size(), packed.data(), packed.size()) != bytes) rows.clear();
    return rows;
}

Result<ByteBuffer> take_needs(Reader& in, const Manifest& manifest, bool is_compressed) {
    const std::size_t row = manifest.needs_row_bytes(), bytes = (1 + manifest.entries.size()) * row;
    if (row == 0) return fail(ErrorCode::invalid, "package manifest: it says what needs its imports and has none");
    ByteBuffer unpacked;
    if (is_compressed) unpacked = take_compressed(in, bytes);
    if (is_compressed && unpacked.empty())
        return fail(ErrorCode::invalid, "package manifest: what its entries need cannot be decompressed");
    const Bytes rows = is_compressed ? Bytes(unpacked) : in.take(bytes);
    const unsigned used = (manifest.imports.size() - 1) % 8 + 1;  // bits of a row's last byte
    for (std::size_t last = row - 1; last < rows.size(); last += row)
        if (std::to_integer<unsigned>(rows[last]) >> used != 0)
            return fail(ErrorCode::invalid, "package manifest: an import that is none is needed");
    return ByteBuffer(rows.begin(), rows.end());
}

Result<Slice> take_slice(Reader& in) {
    Slice slice;
    slice.triple = in.text();
    slice.form = static_cast<Forms>(in.number<std::uint8_t>());
    slice.compression = static_cast<Compression>(in.number<std::uint8_t>());
    slice.raw_bytes = in.number<std::uint32_t>();
    slice.stored_bytes = in.number<std::uint32_t>();
    slice.hash = in.id<SliceHash>();
    if (!in.ok()) return slice;  // the caller reports the missing bytes
    if (!is_name(slice.triple)) return fail(ErrorCode::invalid, "package manifest: a slice without a target");
    if (slice.form != Forms::image && slice.form != Forms::bitcode)
        return fail(ErrorCode::invalid, "package manifest: a slice of unknown form {}",
                    static_cast<unsigned>(slice.form));
    if (slice.compression != Compression::none && slice.compression != Compression::zstd)
        return fail(ErrorCode::invalid, "package manifest: a slice of unknown compression {}",
                    static_cast<unsigned>(slice.compression));
    if (slice.raw_bytes == 0 || slice.raw_bytes > kSliceBytesMax || slice.stored_bytes == 0 ||
        slice.stored_bytes > kSliceBytesMax)
        return fail(ErrorCode::invalid, "package manifest: a slice of {} bytes ({} stored); the limit is {}",
                    slice.raw_bytes, slice.stored_bytes, kSliceBytesMax);
    if (slice.compression == Compression::none && slice.raw_bytes != slice.stored_bytes)
        return fail(ErrorCode::invalid, "package manifest: an uncompressed slice with two sizes");
    return slice;
}

Status check(const Manifest& manifest) {
    if (!is_name(manifest.name)) return fail(ErrorCode::invalid, "package manifest: the package has no name");
    for (const std::string& soname : manifest.dependencies)
        if (soname.find('/') != std::string::npos)
            return fail(ErrorCode::invalid,
                        "package manifest: dependency '{}' is a path; only bare sonames may be listed", soname);
    for (std::size_t i = 0; i < manifest.slices.size(); ++i)
        if (manifest.find(manifest.slices[i].triple, manifest.slices[i].form) != &manifest.slices[i])
            return fail(ErrorCode::invalid, "package manifest: two slices of one form for {}",
                        manifest.slices[i].triple);
    return {};
}

}  // namespace

bool is_name(std::string_view text) {
    return !text.empty() && text.size() <= kNameBytesMax &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

std::string_view to_string(Forms form) {
    return form == Forms::image ? "image" : "bitcode";
}

const Slice* Manifest::find(std::string_view triple, Forms form) const {
    const auto found = std::find_if(slices.begin(), slices.end(),
                                    [&](const Slice& slice) { return slice.form == form && slice.triple == triple; });
    return found != slices.end() ? &*found : nullptr;
}

bool Manifest::row_needs(std::size_t row, std::size_t import) const {
    if (needs.empty()) return true;
    return (std::to_integer<unsigned>(needs[row * needs_row_bytes() + import / 8]) >> import % 8 & 1U) != 0;
}

bool Manifest::entry_needs_any(std::size_t entry, Bytes of) const {
    if (of.empty()) return false;
    const std::size_t row = (1 + entry) * needs_row_bytes();
    for (std::size_t i = 0; i < of.size(); ++i)
        if ((of[i] & (needs.empty() ? std::byte{0xFF} : needs[row + i])) != std::byte{0}) return true;
    return false;
}

bool Manifest::is_needed(std::size_t import) const {
    for (std::size_t row = 0; row <= entries.size(); ++row)
        if (row_needs(row, import)) return true;
    return false;
}

ByteBuffer encode(const Manifest& manifest) {
    const bool is_compressed = manifest.needs.size() > kPlainNeedsMax;
    Writer out;
    out.bytes(kMagic);
    out.number(manifest.abi);
    out.number(static_cast<std::uint8_t>(
        (manifest.interface ? kFlagInterface : 0) | (manifest.pinned ? kFlagPinned : 0) |
        (manifest.needs.empty() ? 0 : kFlagNeeds) | (is_compressed ? kFlagCompressedNeeds : 0)));
    out.number(std::uint8_t{0});
    out.text(manifest.name);
    for (const auto* names : {&manifest.entries, &manifest.exports, &manifest.imports, &manifest.dependencies})
        put_names(out, *names);
    if (is_compressed) {
        const ByteBuffer packed = compressed(manifest.needs);
        out.number(static_cast<std::uint32_t>(packed.size()));
        out.bytes(packed);
    } else {
        out.bytes(manifest.needs);
    }
    out.number(static_cast<std::uint16_t>(manifest.slices.size()));
    for (const Slice& slice : manifest.slices) {
        out.text(slice.triple);
        out.number(static_cast<std::uint8_t>(slice.form));
        out.number(static_cast<std::uint8_t>(slice.compression));
        out.number(slice.raw_bytes);
        out.number(slice.stored_bytes);
        out.bytes(slice.hash.raw());
    }
    return out.take();
}

Status check_bounds(const Manifest& manifest) {
    constexpr std::size_t kNameShownMax = 200;
    std::size_t names = 0;
    for (const auto& [what, list] : {std::pair{"entries", &manifest.entries},
                                     {"exports", &manifest.exports},
                                     {"imports", &manifest.imports},
                                     {"dependencies", &manifest.dependencies}}) {
        names += list->size();
        for (const std::string& name : *list)
            if (name.size() > kNameBytesMax)
                return fail(ErrorCode::unsupported,
                            "one of its {} has a name of {} bytes, and a package's names have {} at most: {}…", what,
                            name.size(), kNameBytesMax, name.substr(0, kNameShownMax));
    }
    if (manifest.entries.size() > kEntriesMax)
        return fail(ErrorCode::unsupported, "its package would have {} functions, and {} are the most",
                    manifest.entries.size(), kEntriesMax);
    if (names > kNamesMax)
        return fail(ErrorCode::unsupported, "its package would have {} names, and {} are the most", names, kNamesMax);
    if (const std::size_t bytes = encode(manifest).size(); bytes > kManifestBytesMax)
        return fail(ErrorCode::unsupported,
                    "the names in its package would have {} bytes with what belongs to them, and {} are the most: it "
                    "lists {} functions and {} imported names",
                    bytes, kManifestBytesMax, manifest.entries.size(), manifest.imports.size());
    return {};
}

Result<Manifest> decode_manifest(Bytes bytes) {
    if (bytes.size() > kManifestBytesMax)
        return fail(ErrorCode::invalid, "package manifest of {} bytes, over the limit of {}", bytes.size(),
                    kManifestBytesMax);
    Reader in(bytes);
    const Bytes magic = in.take(kMagic.size());
    if (!in.ok() || !std::equal(magic.begin(), magic.end(), kMagic.begin()))
        return fail(ErrorCode::invalid, "not a package manifest: it does not begin with RVM1");
    Manifest manifest;
    manifest.abi = in.number<std::uint16_t>();
    const auto flags = in.number<std::uint8_t>();
    const auto reserved = in.number<std::uint8_t>();
    const bool compressed_needs = (flags & kFlagCompressedNeeds) != 0;
    if ((flags & ~(kFlagInterface | kFlagPinned | kFlagNeeds | kFlagCompressedNeeds)) != 0 || reserved != 0 ||
        (compressed_needs && (flags & kFlagNeeds) == 0))
        return fail(ErrorCode::invalid, "package manifest: flags that this version of Rove does not know");
    manifest.interface = (flags & kFlagInterface) != 0;
    manifest.pinned = (flags & kFlagPinned) != 0;
    manifest.name = in.text();
    std::size_t names_left = kNamesMax;
    ROVE_TRY(manifest.entries, take_names(in, "entries", names_left));
    if (manifest.entries.size() > kEntriesMax)
        return fail(ErrorCode::invalid, "package manifest: {} entries, over the limit of {}; split the package",
                    manifest.entries.size(), kEntriesMax);
    ROVE_TRY(manifest.exports, take_names(in, "exports", names_left));
    ROVE_TRY(manifest.imports, take_names(in, "imports", names_left));
    ROVE_TRY(manifest.dependencies, take_names(in, "dependencies", names_left));
    if ((flags & kFlagNeeds) != 0 && in.ok()) {
        ROVE_TRY(manifest.needs, take_needs(in, manifest, compressed_needs));
    }
    const auto slices = in.number<std::uint16_t>();
    if (slices > kSlicesMax)
        return fail(ErrorCode::invalid, "package manifest: {} slices, over the limit of {}", slices, kSlicesMax);
    for (std::size_t i = 0; i < slices && in.ok(); ++i) {
        ROVE_TRY(Slice slice, take_slice(in));
        manifest.slices.push_back(std::move(slice));
    }
    if (!in.ok()) return fail(ErrorCode::invalid, "package manifest: truncated");
    if (!in.done()) return fail(ErrorCode::invalid, "package manifest: {} bytes too many", in.rest().size());
    ROVE_CHECK(check(manifest));
    return manifest;
}

}  // namespace rove::wire
