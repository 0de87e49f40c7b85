#include "toolchain/kept_facts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "package/digest.hpp"
#include "toolchain/files.hpp"

namespace rove::toolchain {
namespace {

class KeptFactsTest : public testing::Test {
protected:
    void SetUp() override {
        auto folder = TemporaryFolder::make();
        ASSERT_TRUE(folder) << folder.error().message();
        folder_ = std::move(*folder);
        ASSERT_EQ(setenv("ROVE_CACHE", folder_.path().c_str(), 1), 0);
    }
    void TearDown() override { unsetenv("ROVE_CACHE"); }
    static KeptFacts of(const std::string& program = "program", std::string_view made_by = "this") {
        return {program, made_by, [](const Digest&) { return true; }};
    }
    [[nodiscard]] std::filesystem::path file() const {
        return std::filesystem::directory_iterator(folder_.path())->path();
    }

    const Digest kKey = digest_of({"fingerprint"}), kModule = digest_of({"module"});
    const ByteBuffer kNotes{std::byte{1}, std::byte{2}, std::byte{3}};
    const bitcode::Facts facts_{.name = "name",
                                .obstacle = "why",
                                .digest = digest_of({"bitcode"}),
                                .replaced = {"operator new"},
                                .statics = {"one", "other"}};
    TemporaryFolder folder_;
};

TEST_F(KeptFactsTest, IsFoundTheNextTimeForTheSameProgramAndRove) {
    KeptFacts first = of();
    EXPECT_EQ(first.find(kKey), nullptr);
    first.keep(kKey, facts_);
    first.write();
    const KeptFacts next = of();
    const bitcode::Facts* const known = next.find(kKey);
    ASSERT_NE(known, nullptr);
    EXPECT_EQ(*known, facts_);
    EXPECT_EQ(next.find(digest_of({"another"})), nullptr);
    EXPECT_EQ(of("another").find(kKey), nullptr);
    EXPECT_EQ(of("program", "another").find(kKey), nullptr);
}

TEST_F(KeptFactsTest, WhatWasNotedOfAModuleIsFound) {
    KeptFacts first = of();
    first.keep(kKey, facts_);
    first.keep_definitions(kModule, kNotes);
    first.write();
    const KeptFacts next = of();
    EXPECT_TRUE(std::ranges::equal(next.definitions(kModule), kNotes));
    EXPECT_TRUE(next.definitions(kKey).empty());
    EXPECT_NE(next.find(kKey), nullptr);
}

TEST_F(KeptFactsTest, WhatIsNotUsedAgainIsForgotten) {
    KeptFacts first = of();
    first.keep(kKey, facts_);
    first.keep_definitions(kModule, kNotes);
    first.write();
    of().write();
    EXPECT_EQ(of().find(kKey), nullptr);
    EXPECT_TRUE(of().definitions(kModule).empty());
}

TEST_F(KeptFactsTest, NotesForWhichThereIsNoRoomAreLeftOut) {
    KeptFacts first = of();
    first.keep(kKey, facts_);
    first.keep_definitions(kModule, kNotes);
    first.keep_definitions(digest_of({"a large module"}), ByteBuffer(16UL << 20));
    first.write();
    const KeptFacts next = of();
    EXPECT_NE(next.find(kKey), nullptr);
    EXPECT_FALSE(next.definitions(kModule).empty());
    EXPECT_TRUE(next.definitions(digest_of({"a large module"})).empty());
}

TEST_F(KeptFactsTest, AFileWithAnyOtherByteIsAsIfItWereNotThere) {
    KeptFacts first = of();
    first.keep(kKey, facts_);
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
