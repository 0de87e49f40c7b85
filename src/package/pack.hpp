// Making packages: what `rove build` and programs that send their own functions share.
//
// Threads: any. Invariant: PackageCache::find() returns a whole package or nothing (KeptFiles).
#pragma once

#include <filesystem>
#include <vector>

#include "package/kept_files.hpp"
#include "package/package.hpp"

namespace rove {

// One form for one target, compressed if that saves enough; gives its stored bytes in `stored`. `soon`: compressed less and faster, because a
// call waits.
[[nodiscard]] wire::Slice make_slice(const std::string& triple, Forms form, ByteBuffer raw, ByteBuffer& stored,
                                     bool soon = false);

// Fills in manifest.needs, after its entries and imports. `needs` lists the imports that the package as a whole needs,
// then those of each entry. Nothing is filled in if every entry needs every import. False: a manifest has no room for lists that differ, so
// each entry is listed with what any of them needs.
bool set_needs(wire::Manifest& manifest, const std::vector<std::vector<std::string>>& needs);

// The file of a package with these slices, in the order of its manifest. unsupported: the manifest is beyond its bounds.
[[nodiscard]] Result<ByteBuffer> pack(const wire::Manifest& manifest, const std::vector<ByteBuffer>& stored);

// Packages on disk, found by a key of their input. A package that is missing or is not complete is made again.
class PackageCache {
public:
    // The most packages kept. At some 10 KiB each, 20 MiB.
    static constexpr std::size_t kPackagesMax = 2048;

    PackageCache() : PackageCache(KeptFiles::default_folder()) {}
    explicit PackageCache(std::filesystem::path folder) : files_(std::move(folder), ".rove", kPackagesMax, kBytesMax) {}
    // `key`: the digest of everything on which the package depends, including Rove's version. Empty: not found.
    [[nodiscard]] ByteBuffer find(const Digest& key) const;
    // Like KeptFiles::keep().
    Status keep(const Digest& key, Bytes package) const { return files_.keep(key, package); }

private:
    // The size of one package: its manifest, and code in both forms for a few kinds of machines.
    static constexpr std::size_t kBytesMax = 4 * wire::kSliceBytesMax;
    KeptFiles files_;
};

}  // namespace rove
