// Formats that are well spelled and mean harm: cost out of proportion, tables that lead out of the image.
#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <string>
#include <unordered_set>

#include "../watched_new.hpp"
#include "wire/image.hpp"
#include "wire/manifest.hpp"

namespace {
std::atomic<std::size_t> largest_request{0};  // for memory, since it was set to 0
}

void rove::test::asked_for(std::size_t bytes) {
    if (bytes > largest_request.load(std::memory_order_relaxed)) largest_request = bytes;
}

namespace rove::wire {
namespace {

// As many names as there may be: what a comparison of each with all others takes longest for.
Manifest many_names(std::size_t count) {
    Manifest manifest;
    manifest.name = "many";
    manifest.abi = 1;
    for (std::size_t i = 0; i < count; ++i) manifest.exports.push_back("n" + std::to_string(i));
    return manifest;
}

// A tenth of a second of processor time where each name is looked up once, most of a minute where it is compared with all
// the others.
TEST(HostileManifest, ManyNamesAreReadInTimeThatGrowsWithTheirNumber) {
    const ByteBuffer manifest = encode(many_names(kNamesMax));
    ASSERT_LT(manifest.size(), kManifestBytesMax);
    const std::clock_t begun = std::clock();
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(decode_manifest(manifest));
    EXPECT_LT(static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC, 10);
}

// Names that the standard library's hash puts into one bucket of a table for as many: 30 s where they are looked up in such a table.
TEST(HostileManifest, NamesThatAHashDoesNotTellApartAreReadAsQuickly) {
    Manifest manifest = many_names(1);
    const std::size_t buckets = std::unordered_set<std::string_view>(2 * kNamesMax).bucket_count();
    for (std::string name(5, '!'); manifest.exports.size() < kNamesMax / 4;) {
        if (std::hash<std::string_view>()(name) % buckets == 0) manifest.exports.push_back(name);
        for (char& letter : name) {
            if (++letter < 0x7F) break;
            letter = '!';
        }
    }
    for (std::size_t i = 0; manifest.exports.size() < kNamesMax; ++i) manifest.exports.push_back(std::to_string(i));
    const ByteBuffer bytes = encode(manifest);
    const std::clock_t begun = std::clock();
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(decode_manifest(bytes));
    EXPECT_LT(static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC, 10);
}

TEST(HostileManifest, NamesAreBoundedOverAllLists) {
    Manifest manifest = many_names(kNamesMax);
    manifest.imports = {"one"};
    const auto decoded = decode_manifest(encode(manifest));
    ASSERT_FALSE(decoded);
    EXPECT_NE(decoded.error().message().find("more than 8192 names"), std::string::npos) << decoded.error().message();
}

// Of which a node keeps more than of other names.
TEST(HostileManifest, EntriesAreBounded) {
    Manifest manifest = many_names(kEntriesMax + 1);
    std::swap(manifest.entries, manifest.exports);
    const auto decoded = decode_manifest(encode(manifest));
    ASSERT_FALSE(decoded);
    EXPECT_NE(decoded.error().message().find("1025 entries, over the limit of 1024"), std::string::npos)
        << decoded.error().message();
    manifest.entries.pop_back();
    EXPECT_TRUE(decode_manifest(encode(manifest)));
}

TEST(HostileManifest, SlicesAreBounded) {
    Manifest manifest = many_names(1);
    std::swap(manifest.entries, manifest.exports);
    for (std::size_t i = 0; i <= kSlicesMax; ++i)
        manifest.slices.push_back({"target-" + std::to_string(i), Forms::image, Compression::none, 1, 1, {}});
    const auto decoded = decode_manifest(encode(manifest));
    ASSERT_FALSE(decoded);
    EXPECT_NE(decoded.error().message().find("65 slices, over the limit of 64"), std::string::npos)
        << decoded.error().message();
    manifest.slices.pop_back();
    const auto most = decode_manifest(encode(manifest));
    EXPECT_TRUE(most) << most.error().message();
}

// The unwind table of a function of 16 bytes at the begin of a block, as compilers write it.
constexpr std::size_t kCode = 16, kCommon = 24, kFunction = 20;
Image with_unwind_table() {
    Image image;
    image.block.resize(kCode + kCommon + kFunction + 4);
    const std::uint8_t common[kCommon] = {kCommon - 4, 0, 0, 0, 0,  0, 0,    0,  1, 'z',
                                          'R',         0, 1, 8, 16, 1, 0x1B, 12, 7, 8};
    std::memcpy(image.block.data() + kCode, common, sizeof common);
    const std::int32_t function[kFunction / 4] = {kFunction - 4, kCommon + 4, -std::int32_t{kCode + kCommon + 8}, kCode,
                                                  0};
    std::memcpy(image.block.data() + kCode + kCommon, function, sizeof function);
    image.eh_frame_offset = kCode;
    image.eh_frame_bytes = static_cast<std::uint32_t>(image.block.size() - kCode);
    return image;
}
std::string refusal(const Image& image) {
    const auto decoded = decode_image(encode(image), 0);
    return decoded ? "" : decoded.error().message();
}
std::string refusal_with(std::size_t at, std::int32_t word) {
    Image image = with_unwind_table();
    std::memcpy(image.block.data() + at, &word, sizeof word);
    return refusal(image);
}

TEST(HostileUnwindTable, OnlyAWholeOneIsTaken) {
    EXPECT_EQ(refusal(with_unwind_table()), "");
    constexpr std::size_t kCommonAt = kCode, kFunctionAt = kCode + kCommon;
    const auto says = [](const std::string& message, const char* what) {
        EXPECT_NE(message.find(what), std::string::npos) << message << " instead of " << what;
    };
    says(refusal_with(kCommonAt, 4000), "longer than itself");
    says(refusal_with(kCommonAt, -1), "longer than itself");
    says(refusal_with(kCommonAt, 2), "longer than itself");
    says(refusal_with(kFunctionAt, 1000), "longer than itself");
    says(refusal_with(kFunctionAt + 4, 8), "no common record");
    says(refusal_with(kFunctionAt + 4, 0x4000'0000), "no common record");
    says(refusal_with(kFunctionAt + 4, -28), "no common record");
    says(refusal_with(kFunctionAt + 8, 4096), "elsewhere");
    says(refusal_with(kFunctionAt + 8, -4096), "elsewhere");
    says(refusal_with(kFunctionAt + 12, 0x7000'0000), "elsewhere");
    says(refusal_with(kCommonAt + 8, 0x0052'7A09), "unknown version");
    says(refusal_with(kCommonAt + 8, 0x0051'7A01), "unknown marks");
    says(refusal_with(kCommonAt + 8, 0x0000'5201), "absolute addresses");
    says(refusal_with(kCommonAt + 16, 0x0807'0C00), "of an unknown kind");
    says(refusal_with(kCommonAt + 16, 0x0807'0C9B), "of an unknown kind");
    Image image = with_unwind_table();
    image.block.back() = std::byte{1};
    EXPECT_NE(refusal(image), "");
    image = with_unwind_table();
    image.relocations = {{Segment::block, Relocation::Kind::block, kFunctionAt + 8, 0, 0}};
    says(refusal(image), "within its unwind table");
}

// libgcc stops at the first 'R', and at what it does not know before it; then it takes addresses for absolute.
TEST(HostileUnwindTable, MarksAreInTheOrderOfCompilers) {
    for (const char* marks : {"zR", "zLR", "zRS", "zRB", "zSR", "zRR", "zBR", "zRL", "zLLR"}) {
        Image image = with_unwind_table();
        // Their bytes follow the version; the rest of the record moves back, and its length says so.
        const std::string_view text(marks);
        std::vector<std::byte> record{std::byte{1}};
        for (const char mark : text) record.push_back(std::byte(mark));
        const std::vector<std::uint8_t> rest{0, 1, 8, 16, static_cast<std::uint8_t>(text.size() - 1)};
        for (const std::uint8_t each : rest) record.push_back(std::byte{each});
        for (const char mark : text.substr(1)) record.push_back(std::byte(mark == 'R' || mark == 'L' ? 0x1B : 12));
        record.resize(kCommon - 8 + 8 * (record.size() > kCommon - 8));
        image.block.insert(image.block.begin() + kCode + kCommon, record.size() - (kCommon - 8), std::byte{0});
        const std::int32_t bytes = static_cast<std::int32_t>(record.size()) + 4;
        std::memcpy(image.block.data() + kCode, &bytes, sizeof bytes);
        std::copy(record.begin(), record.end(), image.block.begin() + kCode + 8);
        const std::int32_t back = bytes + 8;
        const std::size_t function = kCode + 4 + static_cast<std::size_t>(bytes);
        std::memcpy(image.block.data() + function + 4, &back, sizeof back);
        const std::int32_t distance = -static_cast<std::int32_t>(function + 8);
        std::memcpy(image.block.data() + function + 8, &distance, sizeof distance);
        image.eh_frame_bytes = static_cast<std::uint32_t>(image.block.size() - kCode);
        const bool is_of_compilers = text == "zR" || text == "zLR" || text == "zRS" || text == "zRB";
        if (is_of_compilers)
            EXPECT_EQ(refusal(image), "") << text;
        else
            EXPECT_NE(refusal(image).find("another order"), std::string::npos) << text << ": " << refusal(image);
    }
}

TEST(HostileUnwindTable, ItHasAnEnd) {
    Image image = with_unwind_table();
    image.eh_frame_bytes -= 4;  // the zero word
    EXPECT_NE(refusal(image).find("without an end"), std::string::npos) << refusal(image);
}

// A function's record may point to a table of where its exceptions are caught, relative to the pointer itself.
TEST(HostileUnwindTable, ExceptionTablesAreWithinTheImage) {
    constexpr std::size_t kFunctionAt = kCode + kCommon, kCaught = 24, kPointerAt = kFunctionAt + 17;
    const auto with_exceptions_at = [](std::int32_t distance) {
        Image image = with_unwind_table();
        image.block.resize(kFunctionAt + kCaught + 4);
        image.eh_frame_bytes = static_cast<std::uint32_t>(image.block.size() - kCode);
        const std::uint8_t common[kCommon] = {kCommon - 4, 0, 0, 0, 0,  0, 0,    0,    1,  'z', 'L',
                                              'R',         0, 1, 8, 16, 2, 0x1B, 0x1B, 12, 7,   8};
        std::memcpy(image.block.data() + kCode, common, sizeof common);
        const std::int32_t length = kCaught - 4;
        std::memcpy(image.block.data() + kFunctionAt, &length, sizeof length);
        image.block[kFunctionAt + 16] = std::byte{4};  // bytes of the pointer
        std::memcpy(image.block.data() + kPointerAt, &distance, sizeof distance);
        return refusal(image);
    };
    constexpr auto kBack = -static_cast<std::int32_t>(kPointerAt),
                   kEnd = std::int32_t{kCode + kCommon + kCaught + 4} + kBack;
    EXPECT_EQ(with_exceptions_at(kBack), "");
    EXPECT_EQ(with_exceptions_at(kEnd - 1), "");
    EXPECT_EQ(with_exceptions_at(0), "") << "there is none";
    for (const std::int32_t outside : {kBack - 1, kEnd, 0x7000'0000, -0x7000'0000})
        EXPECT_NE(with_exceptions_at(outside).find("exception table elsewhere"), std::string::npos) << outside;
}

// Every byte changed in several ways: refused, or harmless by the checks above. Under the sanitizers this finds what reads outside.
TEST(HostileUnwindTable, ChangedBytesLeadNowhere) {
    const Image whole = with_unwind_table();
    for (std::size_t i = kCode; i < whole.block.size(); ++i)
        for (const int value : {0, 1, 0x1B, 0x7F, 0x80, 0xFF}) {
            Image image = whole;
            image.block[i] = static_cast<std::byte>(value);
            (void)refusal(image);
        }
}

// A node keeps a place for each static of an image.
TEST(HostileImage, StaticsAreInTheDataAndThereOnce) {
    const auto refusal_of = [](std::vector<Symbol> statics) {
        Image image;
        image.block.resize(8);
        image.data_bytes = 16;
        image.symbols = std::move(statics);
        return refusal(image);
    };
    const auto place = [](std::uint32_t number, std::uint32_t offset, Segment segment = Segment::data) {
        return Symbol{Symbol::Kind::static_, segment, number, offset};
    };
    const Symbol anchor{Symbol::Kind::anchor, Segment::block, 0, 0};
    EXPECT_EQ(refusal_of({place(3, 8), place(4, 0)}), "");
    EXPECT_EQ(refusal_of({anchor, place(3, 8), anchor}), "");
    EXPECT_EQ(refusal_of({place(3, 8), place(3, 8)}), "image: a static twice, or out of its order");
    EXPECT_EQ(refusal_of({place(3, 8), anchor, place(2, 0)}), "image: a static twice, or out of its order");
    EXPECT_EQ(refusal_of({place(3, 4, Segment::block)}), "image: a static that is not in its data");
    EXPECT_EQ(refusal_of({place(3, 16)}), "image: a symbol outside its segment");
}

// A node looks up each entry of an image, and keeps its address.
TEST(HostileImage, EntriesAreThereOnce) {
    const auto refusal_of = [](std::uint32_t first, std::uint32_t second) {
        Image image;
        image.block.resize(8);
        image.symbols = {{Symbol::Kind::entry, Segment::block, first, 0},
                         {Symbol::Kind::entry, Segment::block, second, 4}};
        return refusal(image);
    };
    EXPECT_EQ(refusal_of(0, 1), "");
    EXPECT_EQ(refusal_of(1, 1), "image: an entry twice, or out of its order");
    EXPECT_EQ(refusal_of(1, 0), "image: an entry twice, or out of its order");
}

// A head that promises more than there is costs nothing.
TEST(HostileImage, CountsAreThoseOfTheBytesThatAreThere) {
    Image image;
    image.block.resize(8);
    ByteBuffer bytes = encode(image);
    const std::uint32_t relocations = 1U << 20U;
    std::memcpy(bytes.data() + 8, &relocations, sizeof relocations);
    largest_request = 0;
    const auto decoded = decode_image(bytes, 0);
    EXPECT_LT(largest_request, 1000U) << "bytes asked for, for an image of " << bytes.size();
    ASSERT_FALSE(decoded);
    EXPECT_NE(decoded.error().message().find("truncated"), std::string::npos);
}

}  // namespace
}  // namespace rove::wire
