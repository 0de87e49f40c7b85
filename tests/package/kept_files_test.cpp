#include "package/kept_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "package/digest.hpp"

namespace rove {
namespace {

class KeptFilesTest : public testing::Test {
protected:
    void SetUp() override {
        std::string made = (std::filesystem::temp_directory_path() / "rove-kept-XXXXXX").string();
        ASSERT_NE(mkdtemp(made.data()), nullptr);
        folder_ = made;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    [[nodiscard]] KeptFiles kept(std::size_t most = 4) const { return {folder_ / "kept", ".x", most, 1000}; }
    [[nodiscard]] std::filesystem::path file() const { return folder_ / "kept" / (kKey.hex() + ".x"); }

    const Digest kKey = digest_of({"a"});
    const ByteBuffer content_ = ByteBuffer(10, std::byte{7});
    std::filesystem::path folder_;
};

TEST_F(KeptFilesTest, AreInAFolderOfTheUsersOwn) {
    (void)kept().keep(kKey, content_);
    EXPECT_EQ(kept().find(kKey), content_);
    using std::filesystem::perms;
    EXPECT_EQ(std::filesystem::status(folder_ / "kept").permissions(), perms::owner_all);
    for (const perms others : {perms::group_write, perms::others_write}) {
        std::filesystem::permissions(folder_ / "kept", perms::owner_all | others);
        EXPECT_TRUE(kept().find(kKey).empty());
        const Status why = KeptFiles::check(folder_ / "kept");
        ASSERT_FALSE(why);
        EXPECT_NE(why.error().message().find("others may write in it; run chmod go-w on it"), std::string::npos)
            << why.error().message();
    }
    std::filesystem::permissions(folder_ / "kept", perms::owner_all | perms::group_read | perms::group_exec);
    EXPECT_EQ(kept().find(kKey), content_);
    std::filesystem::remove_all(folder_ / "kept");
    std::ofstream(folder_ / "kept") << "no folder";
    (void)kept().keep(kKey, content_);
    EXPECT_TRUE(kept().find(kKey).empty());
    EXPECT_FALSE(KeptFiles::check(folder_ / "kept"));
}

TEST_F(KeptFilesTest, SayThatTheyCannotBeWritten) {
    EXPECT_TRUE(kept().keep(kKey, content_));
    const Status nowhere = KeptFiles("/proc/nowhere", ".x", 4, 1000).keep(kKey, content_);
    ASSERT_FALSE(nowhere);
    EXPECT_NE(nowhere.error().message().find("nothing can be written in /proc/nowhere (No such file"),
              std::string::npos)
        << nowhere.error().message();
    ASSERT_TRUE(std::filesystem::remove(file()) &&
                std::filesystem::create_directory(file()));  // which no file can take the place of
    EXPECT_FALSE(kept().keep(kKey, content_).has_value());
}

TEST_F(KeptFilesTest, AreRegularFilesOfTheUsersOwn) {
    (void)kept().keep(kKey, content_);
    std::filesystem::rename(file(), folder_ / "elsewhere");
    std::filesystem::create_symlink(folder_ / "elsewhere", file());
    EXPECT_TRUE(kept().find(kKey).empty());
    std::filesystem::remove(file());
    ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
    EXPECT_TRUE(kept().find(kKey).empty()) << "and nobody is waited for";
    (void)kept().keep(kKey, content_);
    EXPECT_EQ(kept().find(kKey), content_) << "it takes the place of what was there";
    if (geteuid() == 0) {
        ASSERT_EQ(chown(file().c_str(), 1, 1), 0);
        EXPECT_TRUE(kept().find(kKey).empty());
        ASSERT_EQ(chown((folder_ / "kept").c_str(), 1, 1), 0);
        EXPECT_NE(KeptFiles::check(folder_ / "kept").error().message().find("it is another user's"), std::string::npos);
    }
}

TEST_F(KeptFilesTest, AreBoundedInBytesAndInNumber) {
    (void)kept().keep(kKey, ByteBuffer(1001));
    EXPECT_TRUE(kept().find(kKey).empty());
    (void)kept().keep(kKey, content_);
    std::filesystem::resize_file(file(), 1001);
    EXPECT_TRUE(kept().find(kKey).empty());
    for (int i = 0; i < 20; ++i) (void)kept().keep(digest_of({std::to_string(i)}), content_);
    const auto all = std::filesystem::directory_iterator(folder_ / "kept");
    EXPECT_LE(std::distance(begin(all), end(all)), 4);
    // What a process that was ended has left.
    const std::filesystem::path left = folder_ / "kept" / (kKey.hex() + ".abcdef"),
                                new_one = folder_ / "kept" / (kKey.hex() + ".ghijkl");
    for (const auto& each : {left, new_one}) std::ofstream(each) << "half";
    std::filesystem::last_write_time(left, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
    (void)kept().keep(kKey, content_);
    EXPECT_FALSE(std::filesystem::exists(left));
    EXPECT_TRUE(std::filesystem::exists(new_one)) << "it may still be written";
}

// As if nobody had used any of them for an hour, the first of them the longest.
TEST_F(KeptFilesTest, ThatWereFoundLatelyStay) {
    const KeptFiles files(folder_, ".x", 4, 1000);
    const auto key = [](const char* of) { return digest_of({of}); };
    auto when = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
    for (const char* each : {"a", "b", "c", "d"}) {
        ASSERT_TRUE(files.keep(key(each), content_));
        std::filesystem::last_write_time(folder_ / (key(each).hex() + ".x"), when += std::chrono::seconds(1));
    }
    EXPECT_EQ(files.find(key("a")), content_);
    ASSERT_TRUE(files.keep(key("e"), content_));
    EXPECT_FALSE(files.find(key("a")).empty()) << "it was found a moment ago";
    EXPECT_TRUE(files.find(key("b")).empty()) << "nobody has used it for the longest time";
    EXPECT_FALSE(files.find(key("e")).empty());
}

TEST_F(KeptFilesTest, OfManyThereAreLittleMoreThanTheMost) {
    constexpr std::size_t kMost = 64;
    const KeptFiles files(folder_, ".x", kMost, 1000);
    std::size_t most = 0;
    for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(files.keep(digest_of({std::to_string(i)}), content_));
        const auto all = std::filesystem::directory_iterator(folder_);
        most = std::max(most, static_cast<std::size_t>(std::distance(begin(all), end(all))));
    }
    EXPECT_GE(most, kMost);
    EXPECT_LE(most, kMost + kMost / 32);
}

}  // namespace
}  // namespace rove
