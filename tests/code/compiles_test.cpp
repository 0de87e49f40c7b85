// Compiles by itself: which bitcode is compiled, with what, and what becomes of it. The compiler is a test's own.
#include "code/compiles.hpp"

#include "loading_parts.hpp"

namespace rove::code {
namespace {

class CompilesTest : public LoadingTest {
protected:
    using Compiled = Result<std::unique_ptr<bitcode::CompiledModule>>;
    // A module with an entry `run`.
    [[nodiscard]] std::unique_ptr<GivenModule> module() {
        auto made = std::make_unique<GivenModule>();
        made->names["run"] = &run_;
        return made;
    }
    [[nodiscard]] PackageCode& know_bitcode(const std::string& name) {
        return know({.name = name, .bitcode = any_bytes(300)});
    }
    // With its image loaded.
    [[nodiscard]] PackageCode& know_loaded(const Contents& contents) {
        PackageCode& package = know(with_bitcode(contents));
        const LockOf lock(mutex_);
        EXPECT_TRUE(*images_.load_if_quick(package, *package.store->slice_index(host_triple(), Forms::image)));
        return package;
    }
    [[nodiscard]] bool queue(PackageCode& package) {
        const LockOf lock(mutex_);
        package.await();
        EXPECT_TRUE(compiles_.queue(package));
        return package.compile == PackageCode::Compile::queued;
    }
    [[nodiscard]] bool do_next() {
        const LockOf lock(mutex_);
        return compiles_.do_next();
    }
    void compile(PackageCode& package) {
        ASSERT_TRUE(queue(package));
        ASSERT_TRUE(do_next());
    }

    char run_ = 0;  // where the compiled entry is
};

TEST_F(CompilesTest, WhatCannotOrNeedNotBeCompiledIsNotQueued) {
    const auto whole = store({.name = "sum", .bitcode = any_bytes(300)});
    PackageCode& package = *known(**add(manifest_of(*whole)));
    EXPECT_FALSE(queue(package)) << "it is not here";
    add_slice(*package.store, *whole, Forms::bitcode);
    options_.forms = Forms::image;
    EXPECT_FALSE(queue(package)) << "it is not to be run";
    options_.forms = Forms::bitcode;
    EXPECT_TRUE(queue(package));
    EXPECT_TRUE(queue(package));
    compiler_.compiles = [this](const bitcode::CompileRequest&) -> Compiled { return module(); };
    EXPECT_TRUE(do_next());
    EXPECT_FALSE(do_next()) << "it was queued once";
    EXPECT_FALSE(queue(package)) << "and is compiled";
}

TEST_F(CompilesTest, WhatIsCompiledRunsFromThenOn) {
    PackageCode& package = know_loaded(small("sum"));
    compiler_.compiles = [&](const bitcode::CompileRequest& request) -> Compiled {
        const LockOf held(mutex_);  // it is free
        EXPECT_EQ(package.compile, PackageCode::Compile::begun);
        EXPECT_TRUE(uses_.is_used(package));
        EXPECT_NE(target_of(package), &run_);
        package.awaited_until = 1;  // long ago
        EXPECT_EQ(request.name, "sum:run");
        EXPECT_EQ(request.resolve("construct"), reinterpret_cast<void*>(&construct));
        EXPECT_EQ(request.resolve("nowhere"), nullptr);
        EXPECT_TRUE(std::ranges::equal(request.bitcode, any_bytes(300)));
        return module();
    };
    compile(package);
    EXPECT_EQ(package.compile, PackageCode::Compile::done);
    EXPECT_EQ(target_of(package), &run_);
    EXPECT_EQ(package.functions[0]->ran, RanAs::bitcode);
    EXPECT_EQ(ready_, std::vector<Digest>{package.store->digest()});
    EXPECT_TRUE(package.awaited()) << "calls of it wait, however long it took";
    EXPECT_EQ(workers_.working(), 0U);
}

// ---- what fails

TEST_F(CompilesTest, WhatCannotBeCompiledGoesOnAsItsImage) {
    compiler_.compiles = [](const bitcode::CompileRequest& request) -> Compiled {
        return fail(ErrorCode::failed, "{} is wrong", request.name);
    };
    PackageCode& running = know_loaded(small("running"));
    PackageCode& come = know(with_bitcode(small("come")));  // after its bitcode was queued
    PackageCode& alone = know_bitcode("alone");
    const void* const target = target_of(running);
    for (PackageCode* package : {&running, &come, &alone}) {
        compile(*package);
        EXPECT_EQ(package->compile, PackageCode::Compile::failed);
        EXPECT_FALSE(queue(*package)) << "it is not tried again";
    }
    EXPECT_EQ(target_of(running), target);
    EXPECT_FALSE(running.error || come.error);
    ASSERT_TRUE(alone.error);
    EXPECT_EQ(alone.error->message(), "alone:run is wrong (on node 7)");
}

TEST_F(CompilesTest, WhatThereWasNoRoomForIsTriedAgain) {
    compiler_.compiles = [](const bitcode::CompileRequest&) -> Compiled {
        return fail(ErrorCode::overloaded, "it is busy");
    };
    PackageCode& package = know_bitcode("sum");
    compile(package);
    EXPECT_FALSE(package.error);
    const std::optional<Error> refusal = package.take_refusal();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->message(), "it is busy (on node 7)");
    compiler_.compiles = [](const bitcode::CompileRequest&) -> Compiled { throw std::bad_alloc(); };
    compile(package);
    EXPECT_EQ(package.compile, PackageCode::Compile::none);
    EXPECT_EQ(package.take_refusal()->message(), "node 7 has no memory to load package sum; call it later (on node 7)");
}

TEST_F(CompilesTest, CodeThatIsToStayHasToFit) {
    const auto stays = [this](std::size_t bytes) {
        return [this, bytes](const bitcode::CompileRequest&) -> Compiled {
            auto made = module();
            made->own_statics = true;
            made->bytes = bytes;
            return made;
        };
    };
    compiler_.compiles = stays(options_.code_bytes_max / 2 + 1);
    PackageCode &large = know_loaded(small("large")), &small_one = know_loaded(small("small"));
    compile(large);
    EXPECT_EQ(large.module, nullptr);
    EXPECT_FALSE(large.pinned) << "its image goes on, and may be evicted";
    EXPECT_EQ(large.compile, PackageCode::Compile::none);
    compiler_.compiles = stays(1000);
    compile(small_one);
    EXPECT_NE(small_one.module, nullptr);
    EXPECT_TRUE(small_one.pinned) << "its statics would be lost with it";
    EXPECT_EQ(budgets_.held(Budget::pinned), small_one.loaded_bytes());
}

TEST_F(CompilesTest, WhatNobodyWaitsForIsNotCompiled) {
    compiler_.compiles = [this](const bitcode::CompileRequest& request) -> Compiled {
        EXPECT_EQ(request.name, "awaited:run");
        return module();
    };
    PackageCode &in_vain = know_bitcode("in_vain"), &awaited = know_bitcode("awaited");
    ASSERT_TRUE(queue(in_vain) && queue(awaited));
    in_vain.awaited_until = 1;  // long ago
    EXPECT_TRUE(do_next());
    EXPECT_EQ(in_vain.compile, PackageCode::Compile::none);
    EXPECT_EQ(ready_, (std::vector<Digest>{in_vain.store->digest(), awaited.store->digest()}))
        << "who had waited for it asks again";
    EXPECT_FALSE(do_next());
}

TEST_F(CompilesTest, NothingBecomesOfWhatIsCompiledWhileTheCacheStops) {
    PackageCode& package = know_bitcode("sum");
    compiler_.compiles = [this](const bitcode::CompileRequest&) -> Compiled {
        const LockOf held(mutex_);
        lock_.stop();
        return module();
    };
    compile(package);
    EXPECT_FALSE(package.loaded());
    EXPECT_FALSE(package.error);
    EXPECT_TRUE(ready_.empty());
}

// ---- what it binds to

TEST_F(CompilesTest, ItBindsToWhatTheImageHas) {
    Contents contents = with_static("sum");
    contents.exports = {"shelf"};
    contents.image->symbols.push_back({.kind = wire::Symbol::Kind::exported, .offset = 4});
    contents.image->symbols.push_back({.kind = wire::Symbol::Kind::anchor, .index = 3, .offset = 8});
    PackageCode& package = know_loaded(contents);
    compiler_.compiles = [&](const bitcode::CompileRequest& request) -> Compiled {
        const auto in_block = [&](std::size_t offset) { return package.image->address(wire::Segment::block, offset); };
        EXPECT_EQ(request.in_image, (bitcode::NamesInImage{{"run", in_block(0)},
                                                           {"shelf", in_block(4)},
                                                           {"rove.anchor.3", in_block(8)},
                                                           {"rove.static.0", package.data->start() + 8}}));
        return module();
    };
    compile(package);
    EXPECT_NE(package.module, nullptr);
}

TEST_F(CompilesTest, ItBindsToStaticsThatAreKept) {
    PackageCode& package = know_loaded(with_static("counts"));
    package.called = true;
    options_.code_bytes_max = 1;
    trim();
    ASSERT_FALSE(package.loaded());
    ASSERT_NE(package.data, nullptr);
    options_.code_bytes_max = 16UL << 20;
    add_slice(*package.store, *store(with_bitcode(with_static("counts"))), Forms::bitcode);
    compiler_.compiles = [&](const bitcode::CompileRequest& request) -> Compiled {
        EXPECT_EQ(request.in_image, (bitcode::NamesInImage{{"rove.static.0", package.data->start() + 8}}));
        return module();
    };
    compile(package);
    EXPECT_NE(package.module, nullptr);
}

TEST_F(CompilesTest, NamesThatOneEntryNeedsMayBeLackedAndCome) {
    PackageCode& package = know({.name = "sum",
                                 .entries = {"run", "other"},
                                 .imports = {"shelf", "board", "plank"},
                                 .needs = {{"plank"}, {}, {"shelf", "board"}},
                                 .bitcode = any_bytes(300)});
    char shelf = 0;
    compiler_.compiles = [&](const bitcode::CompileRequest& request) -> Compiled {
        EXPECT_TRUE(request.may_lack("shelf"));
        EXPECT_TRUE(request.may_lack("board"));
        EXPECT_FALSE(request.may_lack("plank")) << "the package as a whole needs it";
        EXPECT_FALSE(request.may_lack("unlisted"));
        bring("shelf", &shelf);  // before the code is the package's
        auto made = module();
        made->names["other"] = &shelf;
        return made;
    };
    compile(package);
    EXPECT_EQ(target_of(package, 0), &run_);
    EXPECT_EQ(target_of(package, 1), nullptr) << "one has come, and one has not";
    EXPECT_EQ(dynamic_cast<GivenModule&>(*package.module).was_put,
              (std::vector<std::pair<std::string, void*>>{{"shelf", &shelf}}));
    EXPECT_EQ(package.module_lacks, Lacks{std::byte{2}});
}

TEST_F(CompilesTest, WhatFailsForANameIsToBeTriedWhenNamesHaveCome) {
    compiler_.compiles = [](const bitcode::CompileRequest& request) -> Compiled {
        (void)request.may_lack("nowhere");
        return fail(ErrorCode::failed, "no symbol 'nowhere'");
    };
    PackageCode& package = know_bitcode("sum");
    const std::uint64_t generation = symbols_.generation();
    compile(package);
    EXPECT_TRUE(package.lacks_names);
    EXPECT_EQ(package.names_seen, generation);
}

// ---- constructors

TEST_F(CompilesTest, ConstructorsAreRunBeforeTheFirstCallAndOnce) {
    int constructed = 0;
    PackageCode& package = know_bitcode("built");
    compiler_.compiles = [&](const bitcode::CompileRequest&) -> Compiled {
        auto made = module();
        made->constructors = [&] {
            const LockOf held(mutex_);  // it is free
            ++constructed;
            EXPECT_EQ(target_of(package), nullptr);
        };
        return made;
    };
    compile(package);
    EXPECT_EQ(constructed, 1);
    EXPECT_EQ(target_of(package), &run_);
    options_.code_bytes_max = 1;
    package.awaited_until = 0;
    trim();
    ASSERT_FALSE(package.loaded());
    add_slice(*package.store, *store({.name = "built", .bitcode = any_bytes(300)}), Forms::bitcode);
    compile(package);
    EXPECT_TRUE(package.loaded());
    EXPECT_EQ(constructed, 1) << "an earlier code's statics are these";
}

TEST_F(CompilesTest, AConstructorThatThrowsFailsItForGood) {
    PackageCode& package = know(with_bitcode(small("built")));
    compiler_.compiles = [this](const bitcode::CompileRequest&) -> Compiled {
        auto made = module();
        made->constructors = [] { throw std::range_error("it is too far"); };
        return made;
    };
    compile(package);
    EXPECT_EQ(package.compile, PackageCode::Compile::failed);
    EXPECT_FALSE(package.loaded());
    ASSERT_TRUE(package.error) << "its image would construct again";
    EXPECT_EQ(package.error->message(), "a constructor of package built on node 7 let an exception out: it is too far");
}

// ---- opening the compiler

TEST_F(CompilesTest, ACompilerThatCannotBeOpenedIsReportedWhenItIsNeeded) {
    bool warmed = false;
    compiler_.warms_up = [&warmed] {
        warmed = true;
        throw std::bad_alloc();
    };
    compiles_.warm_up();
    EXPECT_TRUE(warmed);
    options_.compiler = []() -> Result<bitcode::Compiler*> {
        return fail(ErrorCode::unsupported, "there is no compiler");
    };
    compiles_.warm_up();
    PackageCode& package = know_bitcode("sum");
    compile(package);
    ASSERT_TRUE(package.error);
    EXPECT_EQ(package.error->message(), "there is no compiler (on node 7)");
}

}  // namespace
}  // namespace rove::code
