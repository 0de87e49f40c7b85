// Tiers by itself: as which form a package is made ready, and what its calls are told until then.
#include "code/tiers.hpp"

#include "loading_parts.hpp"

namespace rove::code {
namespace {

class TiersTest : public LoadingTest {
protected:
    // "ready", "loading", "code", or why not.
    [[nodiscard]] std::string make_ready(PackageCode& package) {
        const LockOf lock(mutex_);
        const auto awaited = tiers_.make_ready(package, kNoNode);
        if (!awaited) return awaited.error().message();
        if (!*awaited) return "ready";
        return **awaited == Awaited::loading ? "loading" : "code";
    }
    [[nodiscard]] bool load_next() {
        const LockOf lock(mutex_);
        return images_.do_next();
    }
    [[nodiscard]] PackageCode& know_manifest(const PackageStore& whole) {
        const auto manifest = add(manifest_of(whole));
        EXPECT_TRUE(manifest);
        return *known(**manifest);
    }
};

TEST_F(TiersTest, ASmallImageIsReadyAtOnceAndItsBitcodeLater) {
    PackageCode& package = know(with_bitcode(small("sum")));
    EXPECT_EQ(make_ready(package), "ready");
    EXPECT_EQ(target_of(package), package.image->address(wire::Segment::block, 0));
    EXPECT_EQ(package.compile, PackageCode::Compile::queued);
    options_.forms = Forms::image;
    PackageCode& other = know(with_bitcode(small("other")));
    EXPECT_EQ(make_ready(other), "ready");
    EXPECT_EQ(other.compile, PackageCode::Compile::none);
}

TEST_F(TiersTest, ALargeImageIsForTheWorkerAndQueuedOnce) {
    PackageCode& package = know(large("sum"));
    EXPECT_EQ(make_ready(package), "loading");
    EXPECT_EQ(make_ready(package), "loading");
    EXPECT_TRUE(load_next());
    EXPECT_FALSE(load_next());
    EXPECT_EQ(make_ready(package), "ready");
}

// Or each call of it would keep its client's other calls waiting for as long.
TEST_F(TiersTest, ConstructorsThatDoNotEndAreNotWaitedForAgain) {
    PackageCode& package = know(large("sum"));
    EXPECT_EQ(make_ready(package), "loading");
    {
        const LockOf lock(mutex_);
        package.constructing = true;
        package.constructing_since = Clock::now();
    }
    EXPECT_EQ(make_ready(package), "loading");
    {
        const LockOf lock(mutex_);
        package.constructing_since -= kConstructingAwaitedMax + std::chrono::seconds(1);
    }
    EXPECT_NE(make_ready(package).find("have run on node 7 for more than 60 s"), std::string::npos);
    const LockOf lock(mutex_);
    package.constructing = false;
}

TEST_F(TiersTest, NoImageIsLoadedWhileBitcodeIsCompiled) {
    const auto whole = store(with_bitcode(with_static("sum")));
    PackageCode& package = know_manifest(*whole);
    EXPECT_EQ(make_ready(package), "code");
    add_slice(*package.store, *whole, Forms::bitcode);
    EXPECT_EQ(make_ready(package), "loading");
    EXPECT_EQ(package.compile, PackageCode::Compile::queued);
    add_slice(*package.store, *whole, Forms::image);
    EXPECT_EQ(make_ready(package), "loading");
    package.await();
    compiler_.compiles = [&](const bitcode::CompileRequest&) -> Result<std::unique_ptr<bitcode::CompiledModule>> {
        EXPECT_EQ(make_ready(package), "loading");
        return std::make_unique<GivenModule>();
    };
    const LockOf lock(mutex_);
    EXPECT_TRUE(compiles_.do_next());
    EXPECT_EQ(package.image, nullptr);
    EXPECT_NE(package.module, nullptr);
}

TEST_F(TiersTest, AFormThatTheNodeDoesNotTakeIsNotRun) {
    PackageCode& package = know(with_bitcode(small("sum")));
    options_.forms = Forms::bitcode;
    EXPECT_EQ(make_ready(package), "loading");
    EXPECT_EQ(package.compile, PackageCode::Compile::queued);
    EXPECT_EQ(package.image, nullptr);
}

TEST_F(TiersTest, WhyNoFormRunsHereIsSaid) {
    PackageCode &none = know({.name = "none"}), &image = know(small("image"));
    PackageCode& bitcode = know({.name = "bitcode", .bitcode = any_bytes(300)});
    const std::string triple(host_triple());
    EXPECT_EQ(make_ready(none), "package none has no form that node 7 can run: it is not built for " + triple +
                                    "; build it with --target " + triple);
    options_.forms = Forms::bitcode;
    EXPECT_EQ(make_ready(image), "package image has no form that node 7 can run: it has no bitcode for " + triple +
                                     ", and the node takes bitcode only (--forms bitcode); ship bitcode, or start the "
                                     "node with --forms both");
    options_.forms = Forms::image;
    EXPECT_TRUE(
        make_ready(bitcode).starts_with("package bitcode has no form that node 7 can run: it has no image for "))
        << make_ready(bitcode);
    options_.forms = Forms::both;
    EXPECT_EQ(make_ready(image), "ready") << "that was not for good";
}

TEST_F(TiersTest, WhatHasNotComeIsSaid) {
    const auto package = store(with_bitcode(small("sum")));
    EXPECT_EQ(tiers_.why_incomplete(*package).message(),
              "package sum has come to node 7 without a form of its code for " + std::string(host_triple()));
    options_.forms = Forms::image;
    EXPECT_EQ(tiers_.why_incomplete(*package).code(), ErrorCode::unsupported);
    EXPECT_TRUE(tiers_.why_incomplete(*package).message().starts_with(
        "package sum has come without its image, and node 7 takes image only"));
}

TEST_F(TiersTest, CodeThatIsWrongIsNotTriedAgain) {
    PackageCode& package = know(malformed("sum"));
    EXPECT_EQ(make_ready(package), kMalformed);
    char shelf = 0;
    bring("shelf", &shelf);
    package.store->drop_slices();
    EXPECT_EQ(make_ready(package), kMalformed);
}

TEST_F(TiersTest, WhatFindsNoRoomNowIsTriedAgain) {
    options_.static_bytes_max = 0;
    PackageCode& package = know(with_static("sum"));
    EXPECT_TRUE(make_ready(package).starts_with("package sum has 24 bytes of statics, and node 7 keeps"));
    options_.static_bytes_max = 100;
    EXPECT_EQ(make_ready(package), "ready");
}

TEST_F(TiersTest, ARefusalIsForOneCall) {
    PackageCode& package = know(small("sum"));
    {
        const LockOf lock(mutex_);
        package.refuse({ErrorCode::overloaded, "it is busy"});
    }
    EXPECT_EQ(make_ready(package), "it is busy");
    EXPECT_EQ(make_ready(package), "ready");
}

TEST_F(TiersTest, WhatLacksANameIsTriedAgainWhenNamesHaveCome) {
    PackageCode& package =
        know({.name = "sum", .imports = {"shelf"}, .needs = {{"shelf"}, {}}, .image = image_of(1, 1)});
    const std::string error = make_ready(package);
    EXPECT_TRUE(error.starts_with("no symbol 'shelf' for sum:run on node 7")) << error;
    package.store->drop_slices();
    EXPECT_EQ(make_ready(package), error) << "it is not looked at again";
    char board = 0, shelf = 0;
    bring("board", &board);
    EXPECT_EQ(make_ready(package), "code");
    add_slice(*package.store,
              *store({.name = "sum", .imports = {"shelf"}, .needs = {{"shelf"}, {}}, .image = image_of(1, 1)}),
              Forms::image);
    EXPECT_EQ(make_ready(package), error) << "another name has come";
    bring("shelf", &shelf);
    ASSERT_EQ(make_ready(package), "ready");
    EXPECT_EQ(address_at(*package.image, kEntryBytes), &shelf);
}

TEST_F(TiersTest, WhatAnEvictionHasClearedIsThereAgain) {
    PackageCode& package = know(small("sum"));
    ASSERT_EQ(make_ready(package), "ready");
    const EntryPoint target = package.functions[0]->target.exchange(nullptr);
    EXPECT_EQ(make_ready(package), "ready");
    EXPECT_EQ(package.functions[0]->target, target);
}

}  // namespace
}  // namespace rove::code
