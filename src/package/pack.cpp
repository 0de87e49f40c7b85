#include "package/pack.hpp"

#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "package/digest.hpp"

namespace rove {

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

void set_needs(wire::Manifest& manifest, const std::vector<std::vector<std::string>>& needs) {
    constexpr std::size_t kBytesMax = wire::kManifestBytesMax / 4;
    const std::size_t row_bytes = manifest.needs_row_bytes();
    if (needs.size() != 1 + manifest.entries.size() || needs.size() * row_bytes > kBytesMax) return;
    manifest.needs.assign(needs.size() * row_bytes, std::byte{0});
    for (std::size_t row = 0; row < needs.size(); ++row)
        for (const std::string& name : needs[row]) {
            const auto found = std::find(manifest.imports.begin(), manifest.imports.end(), name);
            const auto import = static_cast<std::size_t>(found - manifest.imports.begin());
            if (found != manifest.imports.end())
                manifest.needs[row * row_bytes + import / 8] |= std::byte{1} << static_cast<int>(import % 8);
        }
    for (std::size_t import = 0; import < manifest.imports.size(); ++import)
        for (std::size_t entry = 0; entry < manifest.entries.size(); ++entry)
            if (!manifest.whole_needs(import) && !manifest.entry_needs(entry, import)) return;
    manifest.needs.clear();
}

PackageCache::PackageCache() {
    const auto from = [](const char* name) {
        const char* value = std::getenv(name);
        return std::filesystem::path(value != nullptr ? value : "");
    };
    if (const auto own = from("ROVE_CACHE"); !own.empty())
        folder_ = own;
    else if (const auto cache = from("XDG_CACHE_HOME"); !cache.empty())
        folder_ = cache / "rove";
    else if (const auto home = from("HOME"); !home.empty())
        folder_ = home / ".cache" / "rove";
}

Digest PackageCache::key_of(std::initializer_list<std::string_view> made_of) {
    Writer all;
    for (const std::string_view part : made_of) {
        all.number(static_cast<std::uint64_t>(part.size()));
        all.bytes(as_bytes(part));
    }
    return digest_of_manifest(all.take());
}

ByteBuffer PackageCache::find(const Digest& key) const {
    if (folder_.empty()) return {};
    std::ifstream file(file_of(key), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Bytes bytes = as_bytes(text);
    if (text.empty() || !PackageStore::parse(bytes)) return {};
    return {bytes.begin(), bytes.end()};
}

void PackageCache::keep(const Digest& key, Bytes package) const {
    if (folder_.empty()) return;
    std::error_code failed;
    std::filesystem::create_directories(folder_, failed);
    // Written under a temporary name and renamed, because another process may read it.
    const std::filesystem::path temporary = folder_ / (key.hex() + "." + std::to_string(getpid()));
    {
        std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
        if (!file.write(reinterpret_cast<const char*>(package.data()), static_cast<std::streamsize>(package.size()))) {
            file.close();
            std::filesystem::remove(temporary, failed);
            return;
        }
    }
    std::filesystem::rename(temporary, file_of(key), failed);
    if (failed) std::filesystem::remove(temporary, failed);
    std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> all;
    for (const auto& each : std::filesystem::directory_iterator(folder_, failed))
        if (each.path().extension() == ".rove") all.emplace_back(each.last_write_time(failed), each.path());
    if (all.size() <= kPackagesMax) return;
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size() / 4; ++i) std::filesystem::remove(all[i].second, failed);
}

}  // namespace rove
