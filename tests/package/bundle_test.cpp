#include "package/bundle.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "package/digest.hpp"
#include "package/pack.hpp"
#include "wire/manifest.hpp"

namespace rove {
namespace {

TEST(Bundle, IsWrittenAsDocumented) {
    const ByteBuffer bytes = *Bundle::encode({{.key = "k", .package = {}, .why_not = "no"}});
    constexpr unsigned char kExpected[] = {0x52, 0x4f, 0x56, 0x45, 0x42, 0x4e, 0x44, 0x32, 1, 0, 0, 0, 1, 0,
                                           0x6b, 2,    0,    0x6e, 0x6f, 0,    0,    0,    0, 0, 0, 0, 0};
    ASSERT_EQ(bytes.size(), sizeof kExpected);
    EXPECT_EQ(std::memcmp(bytes.data(), kExpected, sizeof kExpected), 0);
}

TEST(Bundle, ComesBackAsItWas) {
    const auto package = std::make_shared<const ByteBuffer>(100, std::byte{1});
    const std::vector<Bundle::Entry> entries{
        {.key = "one", .package = package, .why_not = ""},
        {.key = "two", .package = {}, .why_not = "because"},
        {.key = "three@a/b.cpp", .package = std::make_shared<const ByteBuffer>(5, std::byte{2}), .why_not = ""},
        {.key = "with one", .package = package, .why_not = ""}};
    const ByteBuffer bytes = *Bundle::encode(entries);
    const auto back = Bundle::decode(bytes);
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, entries);
    EXPECT_EQ((*back)[0].package, back->back().package) << "one package of two functions";
    EXPECT_LT(bytes.size(), 220U) << "a package that two functions have is there once";
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(Bundle::decode(Bytes(bytes).first(size))) << size;
    ByteBuffer longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(Bundle::decode(longer));
}

TEST(Bundle, ChangedBytesAreRefusedOrRead) {
    const ByteBuffer bytes = *Bundle::encode(
        {{.key = "key", .package = std::make_shared<const ByteBuffer>(20, std::byte{1}), .why_not = "x"}});
    for (std::size_t at = 0; at < bytes.size(); ++at)
        for (const int bit : {0, 3, 7}) {
            ByteBuffer changed = bytes;
            changed[at] ^= static_cast<std::byte>(1U << static_cast<unsigned>(bit));
            (void)Bundle::decode(changed);  // under the sanitizers: nothing outside is touched
        }
}

// A key that is too long would make the whole bundle unreadable.
TEST(Bundle, WhatCouldNotBeReadIsNotWritten) {
    const std::string longest(60000, 'k');
    EXPECT_TRUE(Bundle::check_key(longest));
    EXPECT_TRUE(Bundle::decode(*Bundle::encode({{.key = longest, .package = {}, .why_not = ""}})));
    const Status longer = Bundle::check_key(longest + 'k');
    ASSERT_FALSE(longer);
    EXPECT_EQ(longer.error().code(), ErrorCode::unsupported);
    EXPECT_NE(longer.error().message().find("has 60001 bytes, and 60000 are the most"), std::string::npos);
    const auto many = Bundle::encode(std::vector<Bundle::Entry>(65537));
    ASSERT_FALSE(many);
    EXPECT_NE(many.error().message().find("65537 functions"), std::string::npos) << many.error().message();
}

TEST(Bundle, EntriesOfManyFunctionsLeaveRoomInTheirManifest) {
    const std::string name(200, 'n');
    EXPECT_EQ(Bundle::entry_of("key", name, 1).size(), Bundle::entry_of("key").size() + 1 + 100);
    for (const std::size_t entries : {std::size_t{600}, wire::kEntriesMax}) {
        wire::Manifest manifest;
        manifest.name = name;
        for (std::size_t i = 0; i < entries; ++i) {
            manifest.entries.push_back(Bundle::entry_of(std::to_string(i), name, entries));
            EXPECT_EQ(Bundle::without_name(manifest.entries.back()), Bundle::entry_of(std::to_string(i)));
        }
        EXPECT_LT(wire::encode(manifest).size(), wire::kManifestBytesMax * 3 / 4);
    }
}

TEST(Bundle, EntriesAreWordsThatSayTheirFunctionsNames) {
    const std::string words = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$";
    for (const std::string name :
         {"square", "main::$_2", "(anonymous namespace)::at<int, char>(int)::{lambda(int)#1}", "a\"b\\*/;c"}) {
        const std::string entry = Bundle::entry_of("key", name, 1);
        EXPECT_EQ(entry.find_first_not_of(words), std::string::npos) << entry;
        EXPECT_TRUE(entry.starts_with(Bundle::entry_of("key") + "."));
        EXPECT_EQ(Bundle::name_in(entry), name);
    }
    EXPECT_EQ(Bundle::name_in("f0.a$0D$7Fb$2"), "a$0D$7Fb$2") << "what could not be printed stays as it is";
    EXPECT_EQ(Bundle::name_in("plain"), "");
    EXPECT_EQ(Bundle::entry_of("key", std::string(60, ':'), 1).size(), Bundle::entry_of("key").size() + 1 + 99)
        << "no half of one";
}

TEST(Bundle, KeysAreThoseOfTheCode) {
    const std::string type = "N4rove6detail7OffloadINS0_2FnIXadL_Z6squareiEEEENS0_7InPlaceEiJiEEE";
    const std::string code = "_ZN4rove6detail7OffloadINS0_2FnIXadL_Z6squareiEEEENS0_7InPlaceEiJiEE3runEP9rove_herePKvm";
    EXPECT_EQ(Bundle::key_of_code(code, "/x/y/z.cpp", false), code);
    EXPECT_EQ(Bundle::without_file(Bundle::key_of(type, "/x/y/z.cpp")), code);
    EXPECT_EQ(Bundle::key_of(type, "/a/y/z.cpp"), Bundle::key_of_code(code + ".__uniq.1234", "/b/c/y/z.cpp", true));
    const std::map<std::string, int> codes{{code, 1}, {code + "@y/z.cpp", 2}};
    EXPECT_EQ(Bundle::find_code(codes, Bundle::key_of(type, "/x/y/z.cpp"))->second, 2) << "the file's own";
    EXPECT_EQ(Bundle::find_code(codes, Bundle::key_of(type, "/x/other.cpp"))->second, 1) << "the whole program's";
    EXPECT_EQ(Bundle::find_code(codes, Bundle::key_of("N4rove6detail7OffloadIE", "/x/y/z.cpp")), codes.end());
    EXPECT_EQ(Bundle::file_of("z.cpp"), "z.cpp");
    EXPECT_EQ(Bundle::file_of("y/z.cpp"), "y/z.cpp");
    EXPECT_EQ(Bundle::file_of("/z.cpp"), "/z.cpp");
    EXPECT_EQ(Bundle::name_of("rove::detail::Fn<&(square(int))>"), "square");
    EXPECT_EQ(Bundle::name_of("rove::detail::Fn<&(a::largest<int>(std::vector<int> const&))>"), "a::largest<int>");
    EXPECT_EQ(Bundle::name_of("rove::detail::Fn<&((anonymous namespace)::hidden(int))>"),
              "(anonymous namespace)::hidden");
    EXPECT_EQ(Bundle::name_of("rove::detail::Fn<&(a::(anonymous namespace)::hidden(int))>"),
              "a::(anonymous namespace)::hidden");
    EXPECT_EQ(Bundle::name_of("main::$_0"), "main::$_0");
    const std::string longest(5000, 'x');
    EXPECT_TRUE(Bundle::name_of("rove::detail::Fn<&(a::f<" + longest + ">(int))>").starts_with("a::f<xxx"));
    EXPECT_LE(Bundle::name_of("rove::detail::Fn<&(a::f<" + longest + ">(int))>").size(), wire::kNameBytesMax);
    EXPECT_LE(Bundle::name_of(longest).size(), wire::kNameBytesMax);
}

// As a disk that fails in the middle of a file.
TEST(PackageFile, ThatCannotBeReadIsNamed) {
    const auto package = PackageStore::open("/proc/self/mem");
    ASSERT_FALSE(package);
    EXPECT_EQ(package.error().code(), ErrorCode::invalid);
    EXPECT_NE(package.error().message().find("cannot read package /proc/self/mem"), std::string::npos)
        << package.error().message();
}

TEST(PackageCache, KeepsWholePackagesOnly) {
    std::string folder = (std::filesystem::temp_directory_path() / "rove-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const PackageCache cache(std::filesystem::path(folder) / "made");
    const Digest key = digest_of({"a", "b"});
    EXPECT_NE(key, digest_of({"ab", ""}));
    EXPECT_TRUE(cache.find(key).empty());
    wire::Manifest manifest;
    manifest.name = "kept";
    manifest.abi = 1;
    manifest.entries = {"run"};
    std::vector<ByteBuffer> stored(1);
    manifest.slices.push_back(make_slice("x86_64-linux-gnu", Forms::bitcode, ByteBuffer(64, std::byte{3}), stored[0]));
    const ByteBuffer package = PackageStore::serialize(manifest, stored);
    (void)cache.keep(key, package);
    EXPECT_EQ(cache.find(key), package);
    const std::filesystem::path file = std::filesystem::path(folder) / "made" / (key.hex() + ".rove");
    std::filesystem::resize_file(file, package.size() - 1);
    EXPECT_TRUE(cache.find(key).empty());
    (void)cache.keep(key, package);
    EXPECT_EQ(cache.find(key), package);
    (void)PackageCache("/proc/nowhere").keep(key, package);  // cannot be written: no harm
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rove
