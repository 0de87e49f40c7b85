#include "toolchain/extracted_before.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "package/digest.hpp"
#include "toolchain/files.hpp"

namespace rove::toolchain {
namespace {

class ExtractedBeforeTest : public testing::Test {
protected:
    void SetUp() override {
        auto folder = TemporaryFolder::make();
        ASSERT_TRUE(folder) << folder.error().message();
        folder_ = std::move(*folder);
        ASSERT_EQ(setenv("ROVE_CACHE", folder_.path().c_str(), 1), 0);
    }
    void TearDown() override { unsetenv("ROVE_CACHE"); }
    static ExtractedBefore of(const std::string& program = "program", std::string_view made_by = "this") {
        return {program, made_by, [](const Digest&) { return true; }};
    }
    [[nodiscard]] std::filesystem::path file() const {
        return std::filesystem::directory_iterator(folder_.path())->path();
    }

    const Digest kKey = digest_of({"fingerprint"}), kModule = digest_of({"module"});
    const ByteBuffer kNotes{std::byte{1}, std::byte{2}, std::byte{3}};
    const code::jit::Extracted extracted_{.keys = {"key"},
                                          .name = "name",
                                          .obstacle = "why",
                                          .digest = digest_of({"bitcode"}),
                                          .bitcode = ByteBuffer(3),
                                          .entries = {"entry"},
                                          .replaced = {"operator new"},
                                          .statics = {"one", "other"},
                                          .begin_anew = {"one"}};
    TemporaryFolder folder_;
};

TEST_F(ExtractedBeforeTest, IsFoundTheNextTimeForTheSameProgramAndRove) {
    ExtractedBefore first = of();
    EXPECT_EQ(first.find(kKey), nullptr);
    first.keep(kKey, extracted_);
    first.write();
    const ExtractedBefore next = of();
    const code::jit::Extracted* const known = next.find(kKey);
    ASSERT_NE(known, nullptr);
    EXPECT_EQ(known->name, extracted_.name);
    EXPECT_EQ(known->obstacle, extracted_.obstacle);
    EXPECT_EQ(known->digest, extracted_.digest);
    EXPECT_EQ(known->replaced, extracted_.replaced);
    EXPECT_EQ(known->statics, extracted_.statics);
    EXPECT_TRUE(known->bitcode.empty() && known->begin_anew.empty()) << "these are found out each time";
    EXPECT_EQ(next.find(digest_of({"another"})), nullptr);
    EXPECT_EQ(of("another").find(kKey), nullptr);
    EXPECT_EQ(of("program", "another").find(kKey), nullptr);
}

TEST_F(ExtractedBeforeTest, WhatWasNotedOfAModuleIsFound) {
    ExtractedBefore first = of();
    first.keep(kKey, extracted_);
    first.keep_definitions(kModule, kNotes);
    first.write();
    const ExtractedBefore next = of();
    EXPECT_TRUE(std::ranges::equal(next.definitions(kModule), kNotes));
    EXPECT_TRUE(next.definitions(kKey).empty());
    EXPECT_NE(next.find(kKey), nullptr);
}

TEST_F(ExtractedBeforeTest, WhatIsNotUsedAgainIsForgotten) {
    ExtractedBefore first = of();
    first.keep(kKey, extracted_);
    first.keep_definitions(kModule, kNotes);
    first.write();
    of().write();
    EXPECT_EQ(of().find(kKey), nullptr);
    EXPECT_TRUE(of().definitions(kModule).empty());
}

TEST_F(ExtractedBeforeTest, NotesForWhichThereIsNoRoomAreLeftOut) {
    ExtractedBefore first = of();
    first.keep(kKey, extracted_);
    first.keep_definitions(kModule, kNotes);
    first.keep_definitions(digest_of({"a large module"}), ByteBuffer(16UL << 20));
    first.write();
    const ExtractedBefore next = of();
    EXPECT_NE(next.find(kKey), nullptr);
    EXPECT_FALSE(next.definitions(kModule).empty());
    EXPECT_TRUE(next.definitions(digest_of({"a large module"})).empty());
}

TEST_F(ExtractedBeforeTest, AFileWithAnyOtherByteIsAsIfItWereNotThere) {
    ExtractedBefore first = of();
    first.keep(kKey, extracted_);
    first.keep_definitions(kModule, kNotes);
    first.write();
    const ByteBuffer whole = read_file(file()).value();
    for (std::size_t i = 0; i < whole.size(); ++i) {
        ByteBuffer changed = whole;
        changed[i] ^= std::byte{1};
        ASSERT_TRUE(write_file(file(), changed));
        EXPECT_EQ(of().find(kKey), nullptr) << i;
    }
    ASSERT_TRUE(write_file(file(), whole));
    EXPECT_NE(of().find(kKey), nullptr);
}

}  // namespace
}  // namespace rove::toolchain
