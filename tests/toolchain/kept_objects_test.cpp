#include "toolchain/kept_objects.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "package/digest.hpp"
#include "toolchain/files.hpp"

namespace rove::toolchain {
namespace {

using bitcode::SharedObjects;

class KeptObjectsTest : public testing::Test {
protected:
    void SetUp() override {
        auto folder = TemporaryFolder::make();
        ASSERT_TRUE(folder) << folder.error().message();
        folder_ = std::move(*folder);
        ASSERT_EQ(setenv("ROVE_CACHE", folder_.path().c_str(), 1), 0);
    }
    void TearDown() override { unsetenv("ROVE_CACHE"); }
    static void add(SharedObjects& objects, const std::string& made_of, std::size_t bytes) {
        (void)objects.keep({.made_of = digest_of({made_of}), .object = ByteBuffer(bytes, std::byte{7})});
    }
    // Two.
    static void keep(const std::string& program = "program") {
        SharedObjects objects;
        KeptObjects kept(program, "this");
        kept.find(objects);
        add(objects, "one", 5);
        add(objects, "other", 0);
        kept.keep(objects);
    }
    static std::size_t found(const std::string& program = "program", std::string_view made_by = "this") {
        SharedObjects objects;
        KeptObjects(program, made_by).find(objects);
        return objects.count();
    }
    [[nodiscard]] std::filesystem::path file() const {
        return std::filesystem::directory_iterator(folder_.path())->path();
    }
    TemporaryFolder folder_;
};

TEST_F(KeptObjectsTest, AreFoundTheNextTimeForTheSameProgramAndRove) {
    EXPECT_EQ(found(), 0U);
    keep();
    SharedObjects objects;
    KeptObjects("program", "this").find(objects);
    ASSERT_EQ(objects.count(), 2U);
    const auto one = objects.find(digest_of({"one"}));
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->object, ByteBuffer(5, std::byte{7}));
    EXPECT_TRUE(objects.find(digest_of({"other"}))->object.empty());
    EXPECT_EQ(found("another"), 0U);
    EXPECT_EQ(found("program", "another"), 0U);
}

TEST_F(KeptObjectsTest, ThoseOfBeforeAreKeptBesideNewOnes) {
    keep();
    SharedObjects objects;
    KeptObjects kept("program", "this");
    kept.find(objects);
    add(objects, "third", 1);
    kept.keep(objects);
    EXPECT_EQ(found(), 3U);
}

TEST_F(KeptObjectsTest, AreNotWrittenWhereNoneIsNew) {
    keep();
    SharedObjects objects;
    KeptObjects kept("program", "this");
    kept.find(objects);
    ASSERT_TRUE(std::filesystem::remove(file()));
    kept.keep(objects);
    EXPECT_EQ(found(), 0U);
}

TEST_F(KeptObjectsTest, WhereThereIsNoRoomForAllNewOnesAreKept) {
    const auto add_and_keep = [](const std::string& made_of, std::size_t bytes) {
        SharedObjects objects;
        KeptObjects kept("program", "this");
        kept.find(objects);
        add(objects, made_of, bytes);
        kept.keep(objects);
    };
    keep();
    add_and_keep("large", 20UL << 20);
    EXPECT_EQ(found(), 3U);
    add_and_keep("large as well", 20UL << 20);
    EXPECT_EQ(found(), 1U);
    add_and_keep("too large", 33UL << 20);
    EXPECT_EQ(found(), 1U) << "the file is as it was";
}

TEST_F(KeptObjectsTest, AFileWithAnyOtherByteIsAsIfItWereNotThere) {
    keep();
    const ByteBuffer whole = read_file(file()).value();
    for (std::size_t i = 0; i < whole.size(); ++i) {
        ByteBuffer changed = whole;
        changed[i] ^= std::byte{1};
        ASSERT_TRUE(write_file(file(), changed));
        EXPECT_EQ(found(), 0U) << i;
    }
    ASSERT_TRUE(write_file(file(), whole));
    EXPECT_EQ(found(), 2U);
}

}  // namespace
}  // namespace rove::toolchain
