// New code of a package by itself: what is made of it before it is the package's, and what it is from then on.
#include "code/new_code.hpp"

#include <gtest/gtest.h>

#include "cache_parts.hpp"
#include "given_compiler.hpp"

namespace rove::code {
namespace {

class NewCodesTest : public KeepingTest {
protected:
    [[nodiscard]] NewCode compiled(const PackageCode& package) {
        NewCode code;
        code.module = std::make_unique<GivenModule>();
        code.entries.resize(package.functions.size());
        for (std::size_t i = 0; i < package.functions.size(); ++i) code.name_entry(package, i, &compiled_[i]);
        return code;
    }
    char compiled_[2] = {};  // where functions are that nobody calls
};

TEST_F(NewCodesTest, FunctionsRunTheirImageAndThenTheirBitcode) {
    const wire::Image image = image_of(2);
    PackageCode& package = know({.name = "sum", .entries = {"one", "two"}, .image = image});
    const LockOf lock(mutex_);
    new_codes_.take_image(package, image, loaded(package, image));
    for (std::size_t i = 0; i < 2; ++i) {
        const Function& function = *package.functions[i];
        EXPECT_EQ(reinterpret_cast<void*>(function.target.load()),
                  package.image->address(wire::Segment::block, kEntryBytes * i));
        EXPECT_EQ(function.ran, RanAs::image);
        EXPECT_EQ(known_.find(function.target), &function);
    }
    const EntryPoint as_image = package.functions[1]->target;
    new_codes_.take_module(package, compiled(package));
    EXPECT_EQ(package.compile, PackageCode::Compile::done);
    for (std::size_t i = 0; i < 2; ++i) {
        const Function& function = *package.functions[i];
        EXPECT_EQ(reinterpret_cast<void*>(function.target.load()), &compiled_[i]);
        EXPECT_EQ(function.ran, RanAs::bitcode);
        EXPECT_EQ(known_.find(function.target), &function);
    }
    EXPECT_NE(package.image, nullptr) << "runs of it go on";
    EXPECT_EQ(known_.find(as_image), package.functions[1].get()) << "and are found by its addresses";
}

TEST_F(NewCodesTest, AnEntryThatLacksANameHasNoCodeToRun) {
    const wire::Image image = image_of(2);
    PackageCode& package = know({.name = "sum",
                                 .entries = {"one", "two"},
                                 .imports = {"there", "nowhere"},
                                 .needs = {{}, {"there"}, {"there", "nowhere"}},
                                 .image = image});
    const LockOf lock(mutex_);
    NewCode code = loaded(package, image);
    code.lacks = {std::byte{2}};
    new_codes_.take_image(package, image, std::move(code));
    EXPECT_NE(package.functions[0]->target, nullptr);
    EXPECT_EQ(package.functions[1]->target, nullptr);
    EXPECT_EQ(package.image_lacks, Lacks{std::byte{2}});
}

TEST_F(NewCodesTest, WhatIsTakenIsCountedInPlaceOfWhatWasReserved) {
    const wire::Image image = image_of(1);
    PackageCode& package = know({.name = "stays", .pinned = true, .image = image});
    const LockOf lock(mutex_);
    ASSERT_TRUE(evictor_.reserve(package, 100'000, 0));
    EXPECT_EQ(budgets_.held(Budget::pinned), 100'000U);
    const std::uint64_t before = uses_.now();
    new_codes_.take_image(package, image, loaded(package, image));
    EXPECT_EQ(budgets_.held(Budget::pinned), package.image->code_bytes());
    EXPECT_GT(uses_.now(), before) << "it is newer than all that was used";
    EXPECT_EQ(new_codes_.taken(), 1U);
    new_codes_.take_module(package, compiled(package));
    EXPECT_EQ(budgets_.held(Budget::pinned), package.image->code_bytes() + package.module->code_bytes());
    EXPECT_EQ(new_codes_.taken(), 2U);
}

TEST_F(NewCodesTest, StaticsAreThoseOfTheFirstImage) {
    wire::Image image = image_of(1);
    image.data_bytes = 16;
    image.data = {std::byte{40}};
    PackageCode& package = know({.name = "counts", .image = image});
    const LockOf lock(mutex_);
    const auto take = [&](std::uint32_t offset) REQUIRES(lock_of<CodeCache>) {
        NewCode code = loaded(package, image);
        code.statics = {{.number = 0, .offset = offset}};
        const Budgets::GivesBack room{budgets_, package};
        ASSERT_TRUE(
            evictor_.reserve(package, 0, package.data ? 0 : image.data_bytes + sizeof(PackageCode::StaticPlace)));
        new_codes_.take_image(package, image, std::move(code));
    };
    take(8);
    ASSERT_NE(package.data, nullptr);
    EXPECT_EQ(budgets_.static_bytes(), package.static_bytes());
    EXPECT_EQ(budgets_.keepers(), std::vector<PackageCode*>{&package});
    *package.data->start() = std::byte{41};
    known_.take_back_entries(package);
    package.release_code();
    take(0);
    EXPECT_EQ(*package.data->start(), std::byte{41}) << "they are kept";
    EXPECT_EQ(package.image->data(), package.data);
    ASSERT_EQ(package.statics.size(), 1U);
    EXPECT_EQ(package.statics[0].offset, 8U);
    EXPECT_EQ(budgets_.static_bytes(), package.static_bytes());
    EXPECT_EQ(budgets_.keepers().size(), 1U);
}

TEST_F(NewCodesTest, ExportedNamesAreThePackages) {
    const wire::Image image = image_of(1);
    PackageCode& package = know({.name = "offers", .exports = {"shelf"}, .interface = true, .image = image});
    const LockOf lock(mutex_);
    NewCode code = loaded(package, image);
    code.exported["shelf"] = code.image->address(wire::Segment::block, 8);
    new_codes_.take_image(package, image, std::move(code));
    EXPECT_EQ(package.exported.at("shelf"), package.image->address(wire::Segment::block, 8));
}

// ---- code whose constructors have failed

TEST_F(NewCodesTest, CodeThatIsLeftIsKeptUncalledAmongPinnedCode) {
    wire::Image image = image_of(1);
    image.data_bytes = 16;
    for (const bool pinned : {false, true}) {
        PackageCode& package = know({.name = pinned ? "pinned" : "other", .pinned = pinned, .image = image});
        const LockOf lock(mutex_);
        const std::size_t held = budgets_.held(Budget::pinned), keepers = budgets_.keepers().size();
        ASSERT_TRUE(evictor_.reserve(package, 100'000, image.data_bytes));
        NewCode code = loaded(package, image);
        const std::size_t bytes = code.image->code_bytes();
        new_codes_.leave(package, std::move(code));
        EXPECT_EQ(budgets_.held(Budget::pinned), held + bytes) << "in place of what was reserved";
        EXPECT_EQ(budgets_.keepers().size(), keepers + 1) << "its statics are kept";
        EXPECT_EQ(package.image, nullptr);
        EXPECT_EQ(package.functions[0]->target, nullptr) << "nobody calls it";
        EXPECT_EQ(new_codes_.taken(), 0U);
    }
}

TEST_F(NewCodesTest, CodeIsNotLeftWherePinnedCodeHasNoRoom) {
    wire::Image image = image_of(1);
    image.data_bytes = 16;
    options_.code_bytes_max = 100;  // pinned code may have 1 MiB
    PackageCode& full = know({.name = "full", .pinned = true});
    PackageCode& package = know({.name = "other", .image = image});
    const LockOf lock(mutex_);
    ASSERT_TRUE(evictor_.reserve(full, 1 << 20, 0));
    new_codes_.leave(package, loaded(package, image));
    EXPECT_EQ(budgets_.held(Budget::pinned), 1U << 20);
    EXPECT_TRUE(budgets_.keepers().empty());
    EXPECT_EQ(package.left_image, nullptr);
}

// ---- read_image

TEST_F(PartsTest, AnImageIsReadWhereItIsHereAndWhole) {
    const wire::Image image = image_of(2, 1);
    const Contents contents{.name = "sum", .entries = {"one", "two"}, .imports = {"there"}, .image = image};
    const auto whole = store(contents);
    const auto read = read_image(*whole, 0);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, image);
    whole->drop_slices();
    EXPECT_FALSE(read_image(*whole, 0)) << "it is not here";
    Contents fewer = contents;
    fewer.imports.clear();
    const auto wrong = read_image(*store(fewer), 0);
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().message(), "image: a relocation to import 0 of 0");
}

}  // namespace
}  // namespace rove::code
