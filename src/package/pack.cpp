#include "package/pack.hpp"

#include <zstd.h>

#include <algorithm>

#include "package/digest.hpp"

namespace rove {
namespace {

bool all_need_all(const wire::Manifest& manifest) {
    for (std::size_t import = 0; import < manifest.imports.size(); ++import)
        for (std::size_t entry = 0; entry < manifest.entries.size(); ++entry)
            if (!manifest.whole_needs(import) && !manifest.entry_needs(entry, import)) return false;
    return true;
}

}  // namespace

wire::Slice make_slice(const std::string& triple, Forms form, ByteBuffer raw, ByteBuffer& stored, bool soon) {
    wire::Slice slice{triple, form, wire::Compression::none, static_cast<std::uint32_t>(raw.size()), 0, {}};
    ByteBuffer packed(ZSTD_compressBound(raw.size()));
    constexpr int kThorough = 12, kFast = 1;
    const std::size_t size =
        ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), soon ? kFast : kThorough);
    // Images are small and must run at once: saving less than a quarter is not worth the decompression.
    if (ZSTD_isError(size) == 0 && size < raw.size() - raw.size() / 4 &&
        (form == Forms::bitcode || raw.size() > 16 * 1024)) {
        packed.resize(size);
        slice.compression = wire::Compression::zstd;
        stored = std::move(packed);
    } else {
        stored = std::move(raw);
    }
    slice.stored_bytes = static_cast<std::uint32_t>(stored.size());
    slice.hash = hash_of_slice(stored);
    return slice;
}

bool set_needs(wire::Manifest& manifest, const std::vector<std::vector<std::string>>& needs) {
    constexpr std::size_t kSlicesBytes = 8 * 1024;  // room for what is said of them
    const std::size_t row_bytes = manifest.needs_row_bytes();
    if (needs.size() != 1 + manifest.entries.size() || row_bytes == 0) return true;
    manifest.needs.assign(needs.size() * row_bytes, std::byte{0});
    for (std::size_t row = 0; row < needs.size(); ++row)
        for (const std::string& name : needs[row]) {
            const auto found = std::find(manifest.imports.begin(), manifest.imports.end(), name);
            const auto import = static_cast<std::size_t>(found - manifest.imports.begin());
            if (found != manifest.imports.end())
                manifest.needs[row * row_bytes + import / 8] |= std::byte{1} << static_cast<int>(import % 8);
        }
    if (all_need_all(manifest)) {
        manifest.needs.clear();
        return true;
    }
    if (wire::encode(manifest).size() + kSlicesBytes <= wire::kManifestBytesMax) return true;
    ByteBuffer any(row_bytes);
    for (std::size_t at = row_bytes; at < manifest.needs.size(); ++at) any[at % row_bytes] |= manifest.needs[at];
    for (std::size_t at = row_bytes; at < manifest.needs.size(); ++at) manifest.needs[at] = any[at % row_bytes];
    return false;
}

Result<ByteBuffer> pack(const wire::Manifest& manifest, const std::vector<ByteBuffer>& stored) {
    ROVE_CHECK(wire::check_bounds(manifest));
    ByteBuffer file = PackageStore::serialize(manifest, stored);
    ROVE_CHECK(PackageStore::parse(file));  // what nobody could open is not written
    return file;
}

ByteBuffer PackageCache::find(const Digest& key) const {
    ByteBuffer package = files_.find(key);
    if (package.empty() || !PackageStore::parse(package)) return {};
    return package;
}

}  // namespace rove
