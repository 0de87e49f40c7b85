#include "package/package.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include "package/digest.hpp"
#include "package/pack.hpp"
#include "wire/image.hpp"

namespace rove {
namespace {

ByteBuffer sample_image() {
    wire::Image image;
    for (const int value : {0, 0, 0, 0, 0, 0, 0, 0, 0x48, 0x8b, 0x05, 0xf1, 0xff, 0xff, 0xff, 0x48, 0xff, 0x00, 0xc3})
        image.block.push_back(static_cast<std::byte>(value));
    image.data_bytes = 8;
    image.data_alignment = 8;
    image.relocations = {{wire::Segment::block, wire::Relocation::Kind::data, 0, 0, 0}};
    image.symbols = {{wire::Symbol::Kind::entry, wire::Segment::block, 0, 8},
                     {wire::Symbol::Kind::static_, wire::Segment::data, 0, 0}};
    return wire::encode(image);
}

wire::Manifest sample_manifest(Bytes image) {
    wire::Manifest manifest;
    manifest.name = "count";
    manifest.abi = 1;
    manifest.entries = {"count"};
    const auto size = static_cast<std::uint32_t>(image.size());
    manifest.slices = {{"x86_64-linux-gnu", Forms::image, wire::Compression::none, size, size, hash_of_slice(image)}};
    return manifest;
}

ByteBuffer sample_file() {
    return PackageStore::serialize(sample_manifest(sample_image()), {sample_image()});
}

// A package whose entries need some of many imports each; the last import is needed by none.
struct Large {
    static constexpr std::size_t kEntries = 1000, kImports = 500;
    wire::Manifest manifest;
    std::vector<std::vector<std::string>> needs{1 + kEntries};

    // every: of how many imports one is needed, on average.
    explicit Large(unsigned every) {
        manifest.name = "large";
        manifest.abi = 1;
        for (std::size_t i = 0; i < kEntries; ++i) manifest.entries.push_back("f" + std::to_string(i));
        for (std::size_t i = 0; i < kImports; ++i) manifest.imports.push_back("i" + std::to_string(i));
        std::uint32_t random = 1;
        for (std::size_t entry = 0; entry < kEntries; ++entry)
            for (std::size_t import = 0; import + 1 < kImports; ++import)
                if (random = random * 1664525 + 1013904223; (random >> 16) % every == 0)
                    needs[1 + entry].push_back(manifest.imports[import]);
    }
};

TEST(SetNeeds, SaysOfAThousandEntriesWhatEachNeeds) {
    Large large(1);
    for (std::size_t entry = 0; entry < Large::kEntries; ++entry)
        large.needs[1 + entry] = {large.manifest.imports[entry % (Large::kImports - 1)]};
    EXPECT_TRUE(set_needs(large.manifest, large.needs));
    EXPECT_TRUE(wire::check_bounds(large.manifest));
    EXPECT_TRUE(large.manifest.entry_needs(7, 7));
    EXPECT_FALSE(large.manifest.entry_needs(7, 8) || large.manifest.entry_needs(8, 7));
    EXPECT_FALSE(large.manifest.is_needed(Large::kImports - 1)) << "it is weak";
}

TEST(SetNeeds, WhatFillsAManifestIsSaidOfAllEntriesTogether) {
    Large large(2);
    EXPECT_FALSE(set_needs(large.manifest, large.needs));
    EXPECT_TRUE(wire::check_bounds(large.manifest));
    for (std::size_t import = 0; import + 1 < Large::kImports; ++import)
        EXPECT_TRUE(large.manifest.entry_needs(0, import) && large.manifest.entry_needs(999, import));
    EXPECT_FALSE(large.manifest.whole_needs(0));
    EXPECT_FALSE(large.manifest.is_needed(Large::kImports - 1)) << "it is weak, as ever";
}

TEST(PackageFormat, IsTheWorkedExample) {
    const ByteBuffer file = sample_file();
    ASSERT_EQ(file.size(), 178U);
    EXPECT_EQ(as_text(Bytes(file).first(8)), "ROVEPKG1");
    EXPECT_EQ(file[8], std::byte{0x5c});
    EXPECT_EQ(as_text(Bytes(file).subspan(0x0c, 4)), "RVM1");
    EXPECT_EQ(as_text(Bytes(file).subspan(0x2e, 16)), "x86_64-linux-gnu");
    EXPECT_EQ(as_text(Bytes(file).subspan(0x68, 4)), "RVI1");
    const auto package = PackageStore::parse(file);
    ASSERT_TRUE(package) << package.error().what();
    EXPECT_EQ((*package)->digest().hex(), "f6111bfdf452ff2b5e9ef3ddab4979c287b58521a040f2c9c580ab6d0de8adc2");
    EXPECT_EQ((*package)->function_ids()[0].hex(), "063ae02fa701cc21958a9b37015b9b74");
}

TEST(PackageFormat, RefusesEveryTruncationAndEveryFlippedByte) {
    const ByteBuffer file = sample_file();
    for (std::size_t size = 0; size < file.size(); ++size)
        EXPECT_FALSE(PackageStore::parse(Bytes(file).first(size))) << size;
    const Digest digest = (*PackageStore::parse(file))->digest();
    for (std::size_t i = 0; i < file.size(); ++i) {
        ByteBuffer altered = file;
        altered[i] ^= std::byte{0x41};
        const auto package = PackageStore::parse(altered);
        // A name that was altered makes another package, which nobody asked for; all else is refused.
        if (package) EXPECT_NE((*package)->digest(), digest) << i;
    }
}

TEST(PackageFormat, AnotherAbiIsRefusedByName) {
    wire::Manifest manifest = sample_manifest(sample_image());
    manifest.abi = 99;
    const auto package = PackageStore::parse(PackageStore::serialize(manifest, {sample_image()}));
    ASSERT_FALSE(package);
    EXPECT_EQ(package.error().code(), ErrorCode::unsupported);
    EXPECT_NE(package.error().message().find("count was built for abi 99"), std::string::npos);
}

TEST(Package, ASliceAloneIsVerified) {
    const ByteBuffer image = sample_image();
    const auto package = PackageStore::from_manifest(wire::encode(sample_manifest(image)));
    ASSERT_TRUE(package);
    EXPECT_EQ((*package)->stored_slice(0), nullptr);
    ByteBuffer altered = image;
    altered.back() ^= std::byte{1};
    EXPECT_FALSE((*package)->add_slice(0, altered));
    EXPECT_FALSE((*package)->add_slice(1, image));
    EXPECT_FALSE((*package)->add_slice(0, Bytes(image).first(3)));
    SliceHasher hasher;  // as they arrive, in pieces
    for (std::size_t at = 0; at < image.size(); at += 7)
        hasher.add(Bytes(image).subspan(at).first(std::min<std::size_t>(7, image.size() - at)));
    EXPECT_EQ(hasher.hash(), hash_of_slice(image));
    const auto shared = std::make_shared<const ByteBuffer>(image.begin(), image.end());
    EXPECT_FALSE((*package)->add_slice(0, {shared, hash_of_slice(altered)}));
    EXPECT_FALSE((*package)->stored_slice(0));
    EXPECT_TRUE((*package)->add_slice(0, {shared, hasher.hash()}));
    EXPECT_EQ((*package)->stored_slice(0), shared);
    (*package)->drop_slices();
    EXPECT_TRUE((*package)->add_slice(0, image));
    EXPECT_EQ(*(*package)->raw_slice(0), image);
    (*package)->drop_slices();
    EXPECT_FALSE((*package)->raw_slice(0));
}

TEST(Package, DecompressionStopsAtTheSizeTheManifestSays) {
    const ByteBuffer zeros(1 << 20);
    ByteBuffer stored(ZSTD_compressBound(zeros.size()));
    stored.resize(ZSTD_compress(stored.data(), stored.size(), zeros.data(), zeros.size(), 3));
    for (const std::uint32_t claimed : {std::uint32_t{1} << 20, std::uint32_t{4096}, std::uint32_t{2} << 20}) {
        wire::Manifest manifest = sample_manifest(sample_image());
        manifest.slices = {{"x86_64-linux-gnu", Forms::bitcode, wire::Compression::zstd, claimed,
                            static_cast<std::uint32_t>(stored.size()), hash_of_slice(stored)}};
        const auto package = PackageStore::parse(PackageStore::serialize(manifest, {stored}));
        ASSERT_TRUE(package);
        EXPECT_EQ((*package)->raw_slice(0).has_value(), claimed == zeros.size()) << claimed;
    }
}

TEST(Package, AnUnknownEntryListsThoseThereAre) {
    const auto package = PackageStore::parse(sample_file());
    const auto entry = (*package)->entry("cuont");
    ASSERT_FALSE(entry);
    EXPECT_NE(entry.error().message().find("no entry 'cuont'; it has: count"), std::string::npos);
}

}  // namespace
}  // namespace rove
