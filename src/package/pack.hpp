// Making packages: what `rove build` and programs that send their own functions share.
#pragma once

#include <filesystem>
#include <vector>

#include "package/package.hpp"

namespace rove {

// One form for one target, compressed where that is a gain; its stored bytes go to `stored`. `soon`: as it is, for somebody waits.
[[nodiscard]] wire::Slice make_slice(const std::string& triple, wire::Form form, ByteBuffer raw, ByteBuffer& stored,
                                     bool soon = false);

// Fills in manifest.needs, once its entries and imports are there. `needs` names the imports that the package as a whole cannot run without,
// then those of each entry. Nothing is filled in where every entry needs every import, and where the rows would fill the manifest.
void set_needs(wire::Manifest& manifest, const std::vector<std::vector<std::string>>& needs);

// Packages on disk, by what they were made of: $ROVE_CACHE, else rove/ under $XDG_CACHE_HOME or ~/.cache. What is not there,
// cannot be read or written, or is no whole package, is made anew; old ones go when there are too many.
class PackageCache {
public:
    // Packages kept. At some 10 KiB each, 20 MiB.
    static constexpr std::size_t kPackagesMax = 2048;

    PackageCache();
    explicit PackageCache(std::filesystem::path folder) : folder_(std::move(folder)) {}
    // `made_of`: all that a package depends on, Rove's own version included.
    [[nodiscard]] static Digest key_of(std::initializer_list<std::string_view> made_of);
    [[nodiscard]] ByteBuffer find(const Digest& key) const;  // empty: not there
    void keep(const Digest& key, Bytes package) const;

private:
    [[nodiscard]] std::filesystem::path file_of(const Digest& key) const { return folder_ / (key.hex() + ".rove"); }
    std::filesystem::path folder_;  // empty: nowhere
};

}  // namespace rove
