// The formats, held against the worked examples of docs/ and against bytes that are wrong.
#include <gtest/gtest.h>

#include "wire/image.hpp"
#include "wire/manifest.hpp"

namespace rove::wire {
namespace {

ByteBuffer bytes(std::initializer_list<int> values) {
    ByteBuffer buffer;
    for (const int value : values) buffer.push_back(static_cast<std::byte>(value));
    return buffer;
}

Image counter() {
    Image image;
    image.block = bytes({0, 0, 0, 0, 0, 0, 0, 0, 0x48, 0x8b, 0x05, 0xf1, 0xff, 0xff, 0xff, 0x48, 0xff, 0x00, 0xc3});
    image.data_bytes = 8;
    image.data_alignment = 8;
    image.relocations = {{Segment::block, Relocation::Kind::data, 0, 0, 0}};
    image.symbols = {{Symbol::Kind::entry, Segment::block, 0, 8}, {Symbol::Kind::static_, Segment::data, 0, 0}};
    return image;
}

Image everything() {
    Image image = counter();
    image.block.resize(64);
    image.data = bytes({1, 2, 3});
    image.eh_frame_offset = 24;
    image.eh_frame_bytes = 8;
    image.init_array_offset = 32;
    image.init_array_count = 1;
    image.fini_array_offset = 40;
    image.fini_array_count = 1;
    image.relocations.push_back({Segment::block, Relocation::Kind::import, 48, 1, -8});
    image.relocations.push_back({Segment::data, Relocation::Kind::block, 0, 0, 64});
    image.symbols.push_back({Symbol::Kind::anchor, Segment::block, 0, 16});
    return image;
}

Manifest manifest() {
    Manifest m;
    m.name = "walk";
    m.abi = 1;
    m.interface = true;
    m.entries = {"walk", "back"};
    m.exports = {"table"};
    m.imports = {"rove_reply", "memcpy"};
    m.dependencies = {"libz.so.1"};
    m.needs = bytes({0, 1, 3});
    m.slices = {{"x86_64-linux-gnu", Forms::image, Compression::none, 10, 10, {}},
                {"x86_64-linux-gnu", Forms::bitcode, Compression::zstd, 100, 50, {}}};
    return m;
}

TEST(ImageFormat, IsTheWorkedExample) {
    EXPECT_EQ(encode(counter()), bytes({0x52, 0x56, 0x49, 0x31, 0x13, 0, 0, 0, 1, 0,    0,    0,    2,    0,    1,
                                        0,    0,    0,    0,    0,    0, 0, 0, 0, 0x48, 0x8b, 0x05, 0xf1, 0xff, 0xff,
                                        0xff, 0x48, 0xff, 0x00, 0xc3, 8, 0, 0, 0, 8,    0,    0,    0,    0,    0,
                                        0,    0,    0,    0,    0,    0, 2, 0, 0, 0,    0,    0,    0,    0,    0,
                                        0,    8,    0,    0,    0,    5, 0, 0, 0, 0,    0,    0,    0,    0}));
}

TEST(ImageFormat, ComesBackAsItWas) {
    for (const Image& image : {counter(), everything()}) {
        const auto decoded = decode_image(encode(image), 2);
        ASSERT_TRUE(decoded) << decoded.error().what();
        EXPECT_EQ(*decoded, image);
    }
}

TEST(ImageFormat, RefusesEveryTruncation) {
    const ByteBuffer whole = encode(everything());
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(decode_image(Bytes(whole).first(size), 2)) << size;
}

TEST(ImageFormat, AFlippedByteIsRefusedOrStaysInBounds) {
    const ByteBuffer whole = encode(everything());
    for (std::size_t i = 0; i < whole.size(); ++i) {
        for (const int bit : {0, 3, 7}) {
            ByteBuffer altered = whole;
            altered[i] ^= static_cast<std::byte>(1 << bit);
            const auto decoded = decode_image(altered, 2);
            if (!decoded) continue;
            for (const Relocation& each : decoded->relocations) {
                const std::size_t limit = each.where == Segment::block ? decoded->block.size() : decoded->data_bytes;
                EXPECT_LE(each.offset + 8UL, limit);
                EXPECT_LT(each.import, 2U);
            }
        }
    }
}

TEST(ImageFormat, RefusesWhatPointsOutside) {
    const auto refused = [](auto change) {
        Image image = everything();
        change(image);
        return !decode_image(encode(image), 2);
    };
    EXPECT_TRUE(refused([](Image& i) { i.relocations[0].offset = 57; }));
    EXPECT_TRUE(refused([](Image& i) { i.relocations[0].addend = 9; }));
    EXPECT_TRUE(refused([](Image& i) { i.relocations[1].import = 2; }));
    EXPECT_TRUE(refused([](Image& i) { i.symbols[0].offset = 64; }));
    EXPECT_TRUE(refused([](Image& i) { i.eh_frame_bytes = 41; }));
    EXPECT_TRUE(refused([](Image& i) { i.init_array_count = 5; }));
    EXPECT_TRUE(refused([](Image& i) { i.init_array_offset = 33; }));
    EXPECT_TRUE(refused([](Image& i) { i.data_alignment = 3; }));
    EXPECT_TRUE(refused([](Image& i) { i.data_bytes = 2; }));
    EXPECT_FALSE(refused([](Image& i) { i.data_bytes = kImageDataBytesMax; }));
    EXPECT_TRUE(refused([](Image& i) { i.data_bytes = kImageDataBytesMax + 1; }));
    EXPECT_TRUE(refused([](Image& i) { i.block[31] = std::byte{1}; }));  // the unwind table's end
}

TEST(ImageFormat, HasOneSpelling) {
    ByteBuffer spelled = encode(counter());
    spelled[14] |= std::byte{4};  // arrays, and then none: at the place of the 16 bytes between statics and relocations
    spelled.insert(spelled.begin() + 16 + 19 + 12, 16, std::byte{0});
    EXPECT_FALSE(decode_image(spelled, 2));
}

TEST(ManifestFormat, ComesBackAsItWas) {
    const auto decoded = decode_manifest(encode(manifest()));
    ASSERT_TRUE(decoded) << decoded.error().what();
    EXPECT_EQ(*decoded, manifest());
}

TEST(ImageFormat, HasMoreAnchorsThanSixteenBitsCount) {
    Image image = counter();
    for (std::uint32_t i = 0; i < 70'000; ++i)
        image.symbols.push_back({Symbol::Kind::anchor, Segment::block, i, i % 19});
    const auto decoded = decode_image(encode(image), 0);
    ASSERT_TRUE(decoded) << decoded.error().what();
    EXPECT_EQ(*decoded, image);
    image.symbols.resize((std::size_t{1} << 20U) + 1, image.symbols.back());
    EXPECT_FALSE(decode_image(encode(image), 0));
}

TEST(ManifestFormat, RefusesEveryTruncationAndTail) {
    ByteBuffer whole = encode(manifest());
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(decode_manifest(Bytes(whole).first(size))) << size;
    whole.push_back(std::byte{0});
    EXPECT_FALSE(decode_manifest(whole));
}

TEST(ManifestFormat, SaysWhatEachEntryNeeds) {
    Manifest m = manifest();
    m.imports.resize(9, "more");
    m.needs = bytes({0, 0, 1, 1, 2, 0});  // nothing; the first and the last; the second
    EXPECT_FALSE(m.whole_needs(0));
    EXPECT_TRUE(m.entry_needs(0, 0) && m.entry_needs(0, 8) && m.entry_needs(1, 1));
    EXPECT_FALSE(m.entry_needs(0, 1) || m.entry_needs(1, 0) || m.entry_needs(1, 8));
    EXPECT_TRUE(m.is_needed(8));
    EXPECT_FALSE(m.is_needed(7)) << "it is weak";
    m.needs.clear();
    EXPECT_TRUE(m.whole_needs(7) && m.entry_needs(1, 7));
}

// 1000 entries with 200 imports: plain, what they need would have 25 KiB.
TEST(ManifestFormat, CompressesWhatManyEntriesNeed) {
    Manifest m = manifest();
    m.entries.clear();
    m.imports.clear();
    for (int i = 0; i < 1000; ++i) m.entries.push_back("entry" + std::to_string(i));
    for (int i = 0; i < 200; ++i) m.imports.push_back("import" + std::to_string(i));
    m.needs.assign((1 + m.entries.size()) * m.needs_row_bytes(), std::byte{0});
    for (std::size_t entry = 0; entry < m.entries.size(); ++entry)
        m.needs[(1 + entry) * m.needs_row_bytes() + entry % 200 / 8] |= std::byte{1} << static_cast<int>(entry % 8);
    const ByteBuffer encoded = encode(m);
    EXPECT_LT(encoded.size(), m.needs.size());
    const auto decoded = decode_manifest(encoded);
    ASSERT_TRUE(decoded) << decoded.error().message();
    EXPECT_EQ(*decoded, m);
    for (std::size_t size = 0; size < encoded.size(); size += 7)
        EXPECT_FALSE(decode_manifest(Bytes(encoded).first(size))) << size;
    // As many rows as it says, and nothing but those.
    for (const std::size_t rows : {m.entries.size(), m.entries.size() + 2}) {
        Manifest other = m;
        other.needs.resize(rows * m.needs_row_bytes());
        const auto refused = decode_manifest(encode(other));
        ASSERT_FALSE(refused) << rows;
        EXPECT_NE(refused.error().message().find("cannot be decompressed"), std::string::npos);
    }
    m.needs.back() = std::byte{0x80};
    EXPECT_TRUE(decode_manifest(encode(m))) << "the last of 200 imports";
    m.imports.pop_back();
    EXPECT_FALSE(decode_manifest(encode(m))) << "an import that is none";
    Manifest plain = manifest();
    ByteBuffer marked = encode(plain);
    marked[6] = std::byte{9};  // compressed, of what is not there
    EXPECT_FALSE(decode_manifest(marked));
}

// Each bound, and one beyond it: as a reader takes it, and as who writes one is told.
TEST(ManifestFormat, SaysWhichBoundAManifestIsBeyond) {
    Manifest fits;
    fits.name = "sum";
    fits.imports = {std::string(kNameBytesMax, 'i')};
    EXPECT_TRUE(check_bounds(fits));
    EXPECT_TRUE(decode_manifest(encode(fits)));
    Manifest named = fits, entries = fits, names = fits, bytes = fits;
    named.imports[0] += 'i';
    entries.entries.assign(kEntriesMax + 1, "e");
    names.imports.assign(kNamesMax + 1, "i");
    bytes.imports.assign(kManifestBytesMax / 500, std::string(500, 'i'));
    for (const auto& [manifest, words] : {std::pair{&named, "one of its imports has a name of 1025 bytes"},
                                          {&entries, "its package would have 1025 functions, and 1024 are the most"},
                                          {&names, "its package would have 8193 names, and 8192 are the most"},
                                          {&bytes, "it lists 0 functions and 131 imported names"}}) {
        const Status told = check_bounds(*manifest);
        ASSERT_FALSE(told) << words;
        EXPECT_EQ(told.error().code(), ErrorCode::unsupported);
        EXPECT_NE(told.error().message().find(words), std::string::npos) << told.error().message();
        EXPECT_FALSE(decode_manifest(encode(*manifest))) << words;
    }
}

TEST(ManifestFormat, RefusesWhatNoBuildWouldWrite) {
    const auto message = [](auto change) {
        Manifest m = manifest();
        change(m);
        const auto decoded = decode_manifest(encode(m));
        return decoded ? std::string() : decoded.error().message();
    };
    EXPECT_NE(message([](Manifest& m) { m.dependencies = {"/tmp/evil.so"}; }).find("'/tmp/evil.so' is a path"),
              std::string::npos);
    EXPECT_NE(message([](Manifest& m) { m.entries = {"a", "a"}; }).find("twice"), std::string::npos);
    EXPECT_NE(message([](Manifest& m) { m.entries = {"a b"}; }).find("no name"), std::string::npos);
    EXPECT_NE(message([](Manifest& m) { m.name = ""; }).find("no name"), std::string::npos);
    EXPECT_NE(message([](Manifest& m) { m.slices[1] = m.slices[0]; }).find("two slices"), std::string::npos);
    EXPECT_NE(message([](Manifest& m) { m.slices[0].raw_bytes = 11; }).find("two sizes"), std::string::npos);
    EXPECT_NE(message([](Manifest& m) { m.slices[1].raw_bytes = 0xFFFFFFFF; }).find("limit"), std::string::npos);
    EXPECT_NE(message([](Manifest& m) { m.needs[1] = std::byte{4}; }).find("none is needed"), std::string::npos);
    EXPECT_NE(message([](Manifest& m) { m.imports.clear(); }).find("has none"), std::string::npos);
    for (const unsigned form : {0U, 3U, 7U}) {  // 3: a slice is of one form, not of both
        const std::string said = message([form](Manifest& m) { m.slices[0].form = static_cast<Forms>(form); });
        EXPECT_NE(said.find("unknown form " + std::to_string(form)), std::string::npos) << said;
    }
}

}  // namespace
}  // namespace rove::wire
