// ImageLoads by itself: what is loaded in place, and what the worker for images does.
#include "code/image_loads.hpp"

#include "loading_parts.hpp"

namespace rove::code {
namespace {

class ImageLoadsTest : public LoadingTest {
protected:
    [[nodiscard]] Result<bool> load_if_quick(PackageCode& package) {
        const LockOf lock(mutex_);
        return images_.load_if_quick(package, *package.store->slice_index(host_triple(), Forms::image));
    }
    void queue(PackageCode& package) {
        const LockOf lock(mutex_);
        ASSERT_TRUE(images_.queue(package));
        EXPECT_TRUE(package.loading);
        EXPECT_TRUE(images_.has_queued());
    }
    [[nodiscard]] bool do_next() {
        const LockOf lock(mutex_);
        return images_.do_next();
    }
    [[nodiscard]] bool is_quick(const Contents& contents) {
        PackageCode& package = know(contents);
        const auto loaded = load_if_quick(package);
        EXPECT_TRUE(loaded) << loaded.error().message();
        EXPECT_EQ(package.image != nullptr, *loaded);
        return *loaded;
    }
    // Of an image whose bytes are that many.
    [[nodiscard]] static Contents of_bytes(std::size_t bytes) {
        Contents contents = small("of" + std::to_string(bytes));
        wire::Image& image = *contents.image;
        image.block = any_bytes(image.block.size() + bytes - wire::encode(image).size());
        return contents;
    }
};

// ---- in place

TEST_F(ImageLoadsTest, ASmallOneIsLoadedInPlace) {
    PackageCode& package = know(small("sum"));
    const auto loaded = load_if_quick(package);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_TRUE(*loaded);
    EXPECT_EQ(target_of(package), package.image->address(wire::Segment::block, 0));
    EXPECT_FALSE(package.loading);
    EXPECT_TRUE(package.constructed) << "there is nothing to construct";
    EXPECT_EQ(package.names_seen, symbols_.generation());
    EXPECT_TRUE(ready_.empty()) << "nobody waits for it";
}

TEST_F(ImageLoadsTest, WhatIsQuickIsBounded) {
    EXPECT_TRUE(is_quick(of_bytes(kQuickImageBytesMax)));
    EXPECT_FALSE(is_quick(of_bytes(kQuickImageBytesMax + 1)));
    Contents imports = small("imports");
    for (std::size_t i = 0; i < kQuickImportsMax; ++i) imports.imports.push_back("weak" + std::to_string(i));
    EXPECT_TRUE(is_quick(imports));
    imports.imports.emplace_back("another");
    EXPECT_FALSE(is_quick(imports));
}

TEST_F(ImageLoadsTest, LibrariesAreOpenedByTheWorker) {
    Contents contents = small("sum");
    contents.dependencies = {"libz.so.1"};
    PackageCode& package = know(contents);
    EXPECT_FALSE(*load_if_quick(package));
    EXPECT_TRUE(package.scope.libraries.empty());
    queue(package);
    EXPECT_TRUE(do_next());
    EXPECT_TRUE(package.loaded());
    EXPECT_EQ(package.scope.libraries.size(), 1U);
    PackageCode& open = know(with_bitcode(contents));
    open.libraries_open = true;
    EXPECT_TRUE(*load_if_quick(open));
}

TEST_F(ImageLoadsTest, StaticsAndExportedNamesAreFound) {
    Contents contents = with_static("sum");
    contents.exports = {"shelf"};
    contents.image->symbols.push_back({.kind = wire::Symbol::Kind::exported, .offset = 8});
    PackageCode& package = know(contents);
    ASSERT_TRUE(*load_if_quick(package));
    ASSERT_EQ(package.statics.size(), 1U);
    EXPECT_EQ(package.statics[0].offset, 8U);
    EXPECT_EQ(budgets_.static_bytes(), 16 + sizeof(PackageCode::StaticPlace));
    EXPECT_EQ(package.exported.at("shelf"), package.image->address(wire::Segment::block, 8));
    EXPECT_EQ(package.reserved.statics, 0U);
}

TEST_F(ImageLoadsTest, WhatFindsNoRoomLeavesNothing) {
    options_.static_bytes_max = 16;
    PackageCode& package = know(with_static("sum"));
    const auto loaded = load_if_quick(package);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), ErrorCode::overloaded);
    EXPECT_FALSE(package.loaded());
    EXPECT_EQ(budgets_.static_bytes(), 0U);
}

// ---- by the worker

TEST_F(ImageLoadsTest, ConstructorsAreRunByTheWorkerAndOnce) {
    int constructed = 0;
    PackageCode& package = know(with_constructor("built"));
    constructor = [&] {
        const LockOf held(mutex_);  // it is free
        ++constructed;
        EXPECT_EQ(target_of(package), nullptr) << "nobody runs it before";
    };
    EXPECT_FALSE(*load_if_quick(package));
    EXPECT_EQ(constructed, 0);
    queue(package);
    EXPECT_TRUE(do_next());
    EXPECT_EQ(constructed, 1);
    EXPECT_NE(target_of(package), nullptr);
    options_.code_bytes_max = 1;
    trim();
    ASSERT_FALSE(package.loaded());
    options_.code_bytes_max = 16UL << 20;
    add_slice(*package.store, *store(with_constructor("built")), Forms::image);
    EXPECT_TRUE(*load_if_quick(package)) << "now it is quick";
    EXPECT_EQ(constructed, 1);
}

TEST_F(ImageLoadsTest, AConstructorThatThrowsFailsItForGood) {
    constructor = [] { throw std::range_error("it is too far"); };
    PackageCode& package = know(with_constructor("built"));
    queue(package);
    EXPECT_TRUE(do_next());
    EXPECT_FALSE(package.loaded());
    ASSERT_TRUE(package.error);
    EXPECT_EQ(package.error->message(), "a constructor of package built on node 7 let an exception out: it is too far");
}

TEST_F(ImageLoadsTest, WhatIsBeingLoadedIsNotEvicted) {
    options_.code_bytes_max = 1;
    PackageCode& package = know(with_constructor("built"));
    const auto expect_stays = [&] {
        trim();
        EXPECT_NE(package.store->stored_slice(0), nullptr);
    };
    int looked = 0;
    constructor = [&] {
        ++looked;
        expect_stays();
        EXPECT_TRUE(package.loading);
    };
    queue(package);
    expect_stays();
    EXPECT_TRUE(do_next());
    EXPECT_EQ(looked, 1);
    EXPECT_FALSE(package.loading);
    EXPECT_EQ(package.store->stored_slice(0), nullptr) << "from then on it may go";
}

TEST_F(ImageLoadsTest, TheyAreLoadedInTurnAndEachIsTold) {
    PackageCode &first = know(large("first")), &second = know(large("second"));
    queue(first);
    queue(second);
    EXPECT_TRUE(do_next());
    EXPECT_TRUE(first.loaded());
    EXPECT_FALSE(second.loaded());
    EXPECT_EQ(ready_, std::vector<Digest>{first.store->digest()});
    EXPECT_TRUE(do_next());
    EXPECT_TRUE(second.loaded());
    EXPECT_EQ(ready_.size(), 2U);
    EXPECT_FALSE(do_next());
    EXPECT_FALSE(images_.has_queued());
    EXPECT_EQ(workers_.working(), 0U);
}

TEST_F(ImageLoadsTest, WhyOneWasNotLoadedIsKept) {
    PackageCode& package = know(malformed("sum"));
    queue(package);
    EXPECT_TRUE(do_next());
    ASSERT_TRUE(package.error);
    EXPECT_EQ(package.error->message(), kMalformed);
    EXPECT_EQ(ready_.size(), 1U) << "calls that wait get the error";
}

TEST_F(ImageLoadsTest, WhatThereWasNoRoomForIsRefusedForNow) {
    options_.static_bytes_max = 0;
    PackageCode& package = know(with_static("sum"));
    queue(package);
    EXPECT_TRUE(do_next());
    EXPECT_FALSE(package.error);
    EXPECT_FALSE(package.loading);
    const std::optional<Error> refusal = package.take_refusal();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code(), ErrorCode::overloaded);
}

TEST_F(ImageLoadsTest, ItsBitcodeIsCompiledAfterwards) {
    for (const Forms forms : {Forms::both, Forms::image}) {
        options_.forms = forms;
        PackageCode& package = know(with_bitcode(large(forms == Forms::both ? "both" : "image")));
        queue(package);
        EXPECT_TRUE(do_next());
        EXPECT_TRUE(package.loaded());
        EXPECT_EQ(package.compile == PackageCode::Compile::queued, forms == Forms::both);
    }
}

TEST_F(ImageLoadsTest, CallsOfItWaitForAsLongAsItTook) {
    PackageCode& package = know(large("sum"));
    package.awaited_until = 1;  // long ago
    queue(package);
    EXPECT_TRUE(do_next());
    EXPECT_TRUE(package.awaited());
}

TEST_F(ImageLoadsTest, NothingBecomesOfWhatIsLoadedWhileTheCacheStops) {
    PackageCode& package = know(with_constructor("built"));
    constructor = [this] {
        const LockOf held(mutex_);
        lock_.stop();
    };
    queue(package);
    EXPECT_TRUE(do_next());
    EXPECT_FALSE(package.loaded());
    EXPECT_FALSE(package.error);
    EXPECT_TRUE(ready_.empty());
}

}  // namespace
}  // namespace rove::code
