// The budgets for code, from whatever peer it is: their bounds, the order of evictions, and addresses that are used again.
#include <malloc.h>

#include <set>

#include "bitcode/compiler.hpp"
#include "cache_fixture.hpp"
#include "code/loader.hpp"
#include "code/package_code.hpp"
#include "given_compiler.hpp"
#include "package/digest.hpp"
#include "package/pack.hpp"

// libgcc's: the table's entry for an address of code.
extern "C" const void* _Unwind_Find_FDE(void* address, void* bases);  // NOLINT(bugprone-reserved-identifier)

namespace rove::code {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;

class BudgetTest : public CacheTest {
protected:
    void SetUp() override {
        CacheTest::SetUp();
        counter_ = build("counter.c", kCounter);
        abi_ = counter_->manifest().abi;
    }
    // A manifest without code.
    [[nodiscard]] std::shared_ptr<PackageStore> named(const std::string& name, std::size_t functions = 1) const {
        wire::Manifest manifest;
        manifest.name = name;
        manifest.abi = abi_;
        for (std::size_t i = 0; i < functions; ++i) manifest.entries.push_back("go" + std::to_string(i));
        return PackageStore::from_manifest(wire::encode(manifest)).value();
    }
    // A counter whose image has as many bytes more.
    [[nodiscard]] std::shared_ptr<PackageStore> large(const std::string& name, std::size_t bytes,
                                                      bool pinned = false) const {
        const ByteBuffer small = counter_->raw_slice(*counter_->slice_index(host_triple(), Forms::image)).value();
        wire::Image image = wire::decode_image(small, counter_->manifest().imports.size()).value();
        auto value = static_cast<unsigned>(std::hash<std::string>()(name));
        for (std::size_t i = 0; i < bytes; ++i)
            image.block.push_back(static_cast<std::byte>((value = value * 1664525 + 1013904223) >> 24U));
        wire::Manifest manifest = counter_->manifest();
        manifest.name = name;
        manifest.pinned = pinned;
        ByteBuffer stored;
        manifest.slices = {make_slice(std::string(host_triple()), Forms::image, wire::encode(image), stored, true)};
        auto package = PackageStore::from_manifest(wire::encode(manifest)).value();
        EXPECT_TRUE(package->add_slice(0, stored));
        return package;
    }
    std::shared_ptr<PackageStore> counter_;
    std::uint16_t abi_ = 0;
};

// 64 KiB of a peer's manifest can say that each of a thousand entries needs names that this node lacks: what that takes is no thousand times
// the names.
TEST_F(BudgetTest, WhatEntriesLackIsKeptOnce) {
    constexpr std::uint32_t kEntries = 1000, kImports = 40;
    const ByteBuffer small = counter_->raw_slice(*counter_->slice_index(host_triple(), Forms::image)).value();
    wire::Image image = wire::decode_image(small, counter_->manifest().imports.size()).value();
    wire::Manifest manifest;
    manifest.name = "lacks";
    manifest.abi = abi_;
    const wire::Symbol entry = *std::ranges::find(image.symbols, wire::Symbol::Kind::entry, &wire::Symbol::kind);
    std::erase_if(image.symbols, [](const wire::Symbol& each) { return each.kind == wire::Symbol::Kind::entry; });
    for (std::uint32_t i = 0; i < kEntries; ++i) {
        manifest.entries.push_back("go" + std::to_string(i));
        image.symbols.push_back({entry.kind, entry.segment, i, entry.offset});
    }
    image.block.resize((image.block.size() + 7) / 8 * 8);
    for (std::uint32_t i = 0; i < kImports; ++i) {
        manifest.imports.push_back(std::string(600, 'x') + std::to_string(i));
        image.relocations.push_back({wire::Segment::block, wire::Relocation::Kind::import,
                                     static_cast<std::uint32_t>(image.block.size()), i, 0});
        image.block.resize(image.block.size() + 8);
    }
    manifest.needs.assign((1 + kEntries) * manifest.needs_row_bytes(), std::byte{0xFF});
    std::fill_n(manifest.needs.begin(), manifest.needs_row_bytes(), std::byte{0});
    ByteBuffer stored;
    manifest.slices = {make_slice(std::string(host_triple()), Forms::image, wire::encode(image), stored, true)};
    const auto package = PackageStore::from_manifest(wire::encode(manifest)).value();
    ASSERT_TRUE(package->add_slice(0, stored));
    CodeCache cache(options(Forms::image));
    ASSERT_TRUE(cache.add(package, false));
    const std::size_t before = mallinfo2().uordblks;
    ASSERT_TRUE(cache.load(package));
    EXPECT_LT(mallinfo2().uordblks, before + (4U << 20U)) << "24 MB of names, one copy for each entry";
    const std::string error = error_of(cache, *cache.find("lacks:go999"));
    EXPECT_NE(error.find("'" + manifest.imports.front() + "', "), std::string::npos);
}

TEST_F(BudgetTest, AForgottenPackageIsNotFoundByItsName) {
    CodeOptions given = options();
    given.packages_max = 1;
    CodeCache cache(given);
    ASSERT_TRUE(cache.add(named("one"), false));
    ASSERT_NE(cache.find("one:go0"), nullptr);
    ASSERT_TRUE(cache.add(named("two"), false));
    EXPECT_EQ(cache.find("one:go0"), nullptr);
    EXPECT_NE(cache.find("two:go0"), nullptr);
}

TEST_F(BudgetTest, AResidentPackageHasItsNameBackWhenAVisitorOfThatNameIsForgotten) {
    CodeOptions given = options();
    given.packages_max = 2;
    CodeCache cache(given);
    ASSERT_TRUE(cache.add(named("tools"), true));
    const Function* const resident = cache.find("tools:go0");
    ASSERT_TRUE(cache.add(named("tools", 2), false));
    EXPECT_NE(cache.find("tools:go0"), resident);
    ASSERT_TRUE(cache.add(named("other"), false));
    EXPECT_EQ(cache.find("tools:go0"), resident);
}

TEST_F(BudgetTest, ThePackageThatWasUnusedForLongestIsForgottenFirst) {
    CodeOptions given = options();
    given.packages_max = 50;
    CodeCache cache(given);
    const auto name = [](int i) { return "package" + std::to_string(i); };
    for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(cache.add(named(name(i)), false));
        for (int known = 0; known <= i; ++known)
            ASSERT_EQ(cache.find(name(known) + ":go0") != nullptr, known > i - 50) << known << " after " << i;
    }
}

// What its constructors have done to the process they would do again.
TEST_F(BudgetTest, WhatWasConstructedIsNotForgotten) {
    constexpr const char* kMade =
        "void note(long); __attribute__((constructor)) static void make(void) { note(1); }\n"
        "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = 8; (void)h, (void)n; }";
    const auto made = build("made.c", kMade);
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        noted.clear();
        CodeOptions given = options(form);
        given.packages_max = 4;
        CodeCache cache(given);
        ASSERT_TRUE(cache.add(arriving(*made, {form}), false));
        EXPECT_EQ(call(cache, *cache.find("made:go")), 8);
        for (int i = 0; i < 8; ++i) ASSERT_TRUE(cache.add(named("package" + std::to_string(i)), false)) << i;
        ASSERT_NE(cache.find("made:go"), nullptr) << wire::to_string(form);
        EXPECT_EQ(call(cache, *cache.find("made:go")), 8);
        EXPECT_EQ(noted, std::vector<long>{1});
    }
}

// A call that waits for a package's code keeps it known, until it has come or the call has given up.
TEST_F(BudgetTest, WhatACallWaitsForIsNotForgotten) {
    CodeOptions given = options(Forms::image);
    given.packages_max = 3;
    CodeCache cache(given);
    const auto counter = build("counter.c", kCounter);
    ASSERT_TRUE(cache.add(arriving(*counter, {}), false));
    Function* function = cache.find("counter:count");
    EXPECT_TRUE(waits_for_code(cache, *function));
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(cache.add(named("package" + std::to_string(i)), false));
    ASSERT_EQ(cache.find("counter:count"), function);
    ASSERT_TRUE(cache.add(arriving(*counter, {Forms::image}), false));
    EXPECT_EQ(call(cache, *function), 41);
}

// More often than a handle's 16 bits of generation can tell apart.
TEST_F(BudgetTest, AnOldHandleNeverMeansAnotherFunction) {
    prepare_process();  // else each package that is forgotten waits for the kernel
    CodeOptions given = options();
    given.packages_max = 1;
    CodeCache cache(given);
    std::set<std::uint32_t> handles;
    for (int i = 0; i < 66'000; ++i) {
        const auto package = named("package" + std::to_string(i));
        ASSERT_TRUE(cache.add(package, false));
        ASSERT_TRUE(handles.insert(cache.find(package->function_ids().front())->handle).second) << "after " << i;
    }
}

TEST_F(BudgetTest, ManifestsAreCountedAndTheOldestForgotten) {
    CodeCache cache(options(Forms::image, 8 * kMiB));
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(cache.add(named("package" + std::to_string(i), 1000), false));
    EXPECT_LE(cache.usage().manifest_bytes, 2 * kMiB);
    EXPECT_EQ(cache.find("package0:go0"), nullptr);
    EXPECT_NE(cache.find("package39:go999"), nullptr);
}

TEST_F(BudgetTest, SlicesThatNobodyCallsGoFirst) {
    CodeCache cache(options(Forms::image, kMiB));
    ASSERT_TRUE(cache.add(build("counter.c", kCounter), false));
    EXPECT_EQ(call(cache, *cache.find("counter:count")), 41);
    for (int i = 0; i < 12; ++i) {
        ASSERT_TRUE(cache.add(large("large" + std::to_string(i), 200'000), false));
        EXPECT_LE(cache.usage().code_bytes, kMiB + 300'000) << "the budget and the newcomer";
    }
    EXPECT_EQ(cache.usage().evictions, 0U) << "code that was called went before slices that were not";
    EXPECT_EQ(call(cache, *cache.find("large11:count")), 41) << "what came last is still here";
    EXPECT_TRUE(waits_for_code(cache, *cache.find("large0:count")));
    EXPECT_EQ(call(cache, *cache.find("counter:count")), 42);
}

// Pinned is the package's own word: it buys a place among such packages, and pushes nobody out.
TEST_F(BudgetTest, PinnedCodeHasABudgetOfItsOwn) {
    CodeCache cache(options(Forms::image, 4 * kMiB));
    ASSERT_TRUE(cache.add(build("counter.c", kCounter), false));
    Function* counter = cache.find("counter:count");
    EXPECT_EQ(call(cache, *counter), 41);
    std::string refused;
    int taken = 0;
    for (int i = 0; i < 8; ++i) {
        const auto package = large("pinned" + std::to_string(i), 300'000, true);
        ASSERT_TRUE(package->manifest().pinned);
        ASSERT_TRUE(cache.add(package, false));
        Function& function = *cache.find(package->function_ids().front());
        if (std::holds_alternative<Awaited>(cache.enter(function)))
            cache.wait_for_tiers();  // it is not loaded in place
        const auto entered = cache.enter(function);
        if (const auto* error = std::get_if<Error>(&entered)) {
            EXPECT_EQ(error->code(), ErrorCode::overloaded);
            refused = error->message();
        } else {
            ++taken;
        }
    }
    EXPECT_GE(taken, 2);
    EXPECT_LT(taken, 8);
    EXPECT_NE(refused.find("cannot be evicted"), std::string::npos) << refused;
    EXPECT_NE(refused.find("pinned0"), std::string::npos) << "names who has the place: " << refused;
    EXPECT_LE(cache.usage().pinned_bytes, 2 * kMiB);
    const std::size_t loads = cache.usage().loads;
    for (long i = 42; i < 80; ++i) EXPECT_EQ(call(cache, *counter), i);
    EXPECT_EQ(cache.usage().loads, loads) << "it was evicted between its calls";
}

// A package of a small image, and slices for machines that there are not, of a MiB each.
class SpareSlices : public BudgetTest {
protected:
    static constexpr std::size_t kSpare = 12;
    [[nodiscard]] std::shared_ptr<PackageStore> hoard(bool pinned, bool interface = false) {
        const auto whole = interface ? build("shelf.c", std::string("long level = 40;\n") + kCounter, true) : counter_;
        wire::Manifest manifest = whole->manifest();
        manifest.name = "hoard";
        manifest.pinned = pinned;
        const std::size_t image = *whole->slice_index(host_triple(), Forms::image);
        manifest.slices = {whole->manifest().slices[image]};
        for (std::size_t i = 0; i < kSpare; ++i) {
            stored_.emplace_back(kMiB, static_cast<std::byte>(i));
            manifest.slices.push_back({.triple = "machine" + std::to_string(i),
                                       .form = Forms::bitcode,
                                       .compression = wire::Compression::none,
                                       .raw_bytes = kMiB,
                                       .stored_bytes = kMiB,
                                       .hash = hash_of_slice(stored_.back())});
        }
        auto package = PackageStore::from_manifest(wire::encode(manifest)).value();
        EXPECT_TRUE(package->add_slice(0, *whole->stored_slice(image)));
        return package;
    }
    // All of them, one after the other, as they arrive from a peer.
    void add_spare(CodeCache& cache, const Digest& digest) {
        for (std::size_t i = 0; i < kSpare; ++i) {
            ASSERT_TRUE(cache.package(digest)->add_slice(i + 1, stored_[i]));
            cache.slices_added(digest);
            EXPECT_LE(cache.usage().code_bytes, 4 * kMiB) << "after " << i + 1;
            if (i == 0) EXPECT_GT(cache.usage().code_bytes, kMiB) << "there is room for some";
        }
        EXPECT_EQ(cache.usage().evictions, 0U) << "they pushed out code that was called";
    }
    std::vector<ByteBuffer> stored_;
};

TEST_F(SpareSlices, OfPinnedCodeHaveNoPlaceBeyondTheBudget) {
    CodeCache cache(options(Forms::image, 4 * kMiB));
    ASSERT_TRUE(cache.add(counter_, false));
    EXPECT_EQ(call(cache, *cache.find("counter:count")), 41);
    const auto package = hoard(true);
    ASSERT_TRUE(cache.add(package, false));
    EXPECT_EQ(call(cache, *cache.find("hoard:count")), 41);
    add_spare(cache, package->digest());
    EXPECT_LT(cache.usage().pinned_bytes, 100'000U);
    EXPECT_EQ(call(cache, *cache.find("hoard:count")), 42);
}

TEST_F(SpareSlices, OfAnInterfaceHaveNoPlaceBeyondTheBudget) {
    CodeCache cache(options(Forms::image, 4 * kMiB));
    const auto package = hoard(false, true);
    ASSERT_TRUE(cache.add(package, false));
    ASSERT_TRUE(cache.load_interface(package));
    add_spare(cache, package->digest());
    EXPECT_LT(cache.usage().pinned_bytes, 100'000U);
}

TEST_F(SpareSlices, OfCodeThatRunsHaveNoPlaceBeyondTheBudget) {
    CodeCache cache(options(Forms::image, 4 * kMiB));
    const auto package = hoard(false);
    ASSERT_TRUE(cache.add(package, false));
    const auto runs = cache.enter(*cache.find("hoard:count"));
    ASSERT_TRUE(std::holds_alternative<Entered>(runs));
    add_spare(cache, package->digest());
}

// They make room for what comes next, and the code goes on.
TEST_F(SpareSlices, OfPinnedCodeGoBeforeCode) {
    CodeCache cache(options(Forms::image, 4 * kMiB));
    const auto package = hoard(true);
    ASSERT_TRUE(cache.add(package, false));
    EXPECT_EQ(call(cache, *cache.find("hoard:count")), 41);
    for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(package->add_slice(i + 1, stored_[i]));
    cache.slices_added(package->digest());
    EXPECT_GT(cache.usage().code_bytes, 3 * kMiB);
    ASSERT_TRUE(cache.add(large("next", 2'000'000), false));
    EXPECT_LE(cache.usage().code_bytes, 4 * kMiB);
    EXPECT_EQ(package->slice_bytes_held(), 0U);
    EXPECT_EQ(call(cache, *cache.find("hoard:count")), 42);
}

// LLVM's compiler, whose code is said to take more.
class LargeCode final : public CompilesOnly {
public:
    explicit LargeCode(std::size_t bytes) : bytes_(bytes) {}
    Result<std::unique_ptr<bitcode::CompiledModule>> compile(const bitcode::CompileRequest& request) override {
        struct Module : bitcode::CompiledModule {
            void* find(std::string_view name) const override { return of->find(name); }
            std::size_t code_bytes() const override { return bytes; }
            bool has_constructors() const override { return of->has_constructors(); }
            bool has_own_statics() const override { return of->has_own_statics(); }
            void run_constructors() override { of->run_constructors(); }
            bool can_put(std::string_view name) const override { return of->can_put(name); }
            Status put(const std::vector<std::pair<std::string_view, void*>>& names) override { return of->put(names); }
            std::unique_ptr<bitcode::CompiledModule> of;
            std::size_t bytes = 0;
        };
        auto module = std::make_unique<Module>();
        ROVE_TRY(bitcode::Compiler * compiler, bitcode::compiler());
        ROVE_TRY(module->of, compiler->compile(request));
        module->bytes = bytes_;
        return module;
    }

private:
    std::size_t bytes_;
};

// Where the image has its place among pinned code, its bitcode has none yet.
TEST_F(BudgetTest, PinnedCodeThatIsCompiledAgainIsAskedWhetherThereIsRoom) {
    LargeCode compiler(3 * kMiB);
    CodeOptions given = options(Forms::both, 4 * kMiB);
    given.compiler = [&compiler] { return &compiler; };
    for (const bool pinned : {false, true}) {
        CodeCache cache(given);
        wire::Manifest manifest = counter_->manifest();
        manifest.pinned = pinned;
        auto package = PackageStore::from_manifest(wire::encode(manifest)).value();
        for (const Forms form : {Forms::image, Forms::bitcode}) {
            const std::size_t slice = *counter_->slice_index(host_triple(), form);
            ASSERT_TRUE(package->add_slice(slice, *counter_->stored_slice(slice)));
        }
        ASSERT_TRUE(cache.add(package, false));
        Function& function = *cache.find("counter:count");
        EXPECT_EQ(call(cache, function), 41);
        cache.wait_for_tiers();
        RanAs ran{};
        EXPECT_EQ(call(cache, function, &ran), 42);
        EXPECT_EQ(ran, pinned ? RanAs::image : RanAs::bitcode);
        EXPECT_LE(cache.usage().pinned_bytes, 2 * kMiB);
        EXPECT_LE(cache.usage().code_bytes, 4 * kMiB);
    }
}

// Calls that go before their code is loaded leave it to the next ones, but not without bound.
TEST_F(BudgetTest, CodeThatCallsWaitForIsBounded) {
    constexpr std::size_t kEach = 20 * kMiB;
    CodeCache cache(options(Forms::image, kMiB));
    for (int i = 0; i < 12; ++i) {
        const auto package = large("awaited" + std::to_string(i), kEach);
        const auto arrives = PackageStore::from_manifest(package->manifest_bytes()).value();
        ASSERT_TRUE(cache.add(arrives, false));
        Function* const function = cache.find(arrives->function_ids().front());
        ASSERT_TRUE(waits_for_code(cache, *function));
        ASSERT_TRUE(arrives->add_slice(0, *package->stored_slice(0)));
        cache.slices_added(arrives->digest());
        ASSERT_FALSE(waits_for_code(cache, *function));  // it is being loaded
        cache.wait_for_tiers();
        EXPECT_LE(cache.usage().code_bytes, kAwaitedBytesMax + 2 * kEach) << "after " << i;
    }
    EXPECT_GT(cache.usage().code_bytes, kAwaitedBytesMax / 2) << "up to there it stays";
}

TEST_F(BudgetTest, StaticsSayWhoHoldsTheirBudget) {
    CodeOptions given = options(Forms::image);
    given.static_bytes_max = 100'000;
    CodeCache cache(given);
    const auto package = [this](const std::string& name) {
        return build(name + ".c",
                     "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { static volatile char room[60000]; "
                     "room[0]++; *(long *)p = room[0]; (void)h, (void)n; }");
    };
    ASSERT_TRUE(cache.add(package("first"), false));
    EXPECT_EQ(call(cache, *cache.find("first:go")), 1);
    ASSERT_TRUE(cache.add(package("second"), false));
    const std::string error = error_of(cache, *cache.find("second:go"));
    EXPECT_NE(error.find("first (60008)"), std::string::npos) << "with 8 for its place: " << error;
    EXPECT_EQ(call(cache, *cache.find("first:go")), 2);
}

// An image may name as many as it likes.
TEST_F(BudgetTest, PlacesOfStaticsAreCountedAndKeptWithThem) {
    constexpr std::uint32_t kPlaces = 10'000;
    const auto named_often = [this](const std::string& name) {
        const ByteBuffer small = counter_->raw_slice(*counter_->slice_index(host_triple(), Forms::image)).value();
        wire::Image image = wire::decode_image(small, counter_->manifest().imports.size()).value();
        std::erase_if(image.symbols, [](const auto& each) { return each.kind == wire::Symbol::Kind::static_; });
        for (std::uint32_t i = 0; i < kPlaces; ++i)
            image.symbols.push_back({wire::Symbol::Kind::static_, wire::Segment::data, i, i % 8});
        wire::Manifest manifest = counter_->manifest();
        manifest.name = name;
        ByteBuffer stored;
        manifest.slices = {make_slice(std::string(host_triple()), Forms::image, wire::encode(image), stored, true)};
        auto package = PackageStore::from_manifest(wire::encode(manifest)).value();
        EXPECT_TRUE(package->add_slice(0, stored));
        return package;
    };
    CodeOptions given = options(Forms::image, 1);
    given.static_bytes_max = 3 * 8 * kPlaces / 2;
    CodeCache cache(given);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(cache.add(named_often("first"), false));
        EXPECT_EQ(call(cache, *cache.find("first:count")), 41 + i);
        EXPECT_EQ(cache.usage().static_bytes, 8 + 8 * kPlaces);
    }
    EXPECT_EQ(cache.usage().evictions, 3U);
    ASSERT_TRUE(cache.add(named_often("second"), false));
    const auto waits = cache.enter(*cache.find("second:count"));
    ASSERT_TRUE(std::holds_alternative<Awaited>(waits)) << "it is not loaded in place";
    cache.wait_for_tiers();
    const std::string error = error_of(cache, *cache.find("second:count"));
    EXPECT_NE(error.find("first (80008)"), std::string::npos) << error;
}

// Loaded ahead of a call that never came: nobody counts on what its statics hold.
TEST_F(BudgetTest, StaticsOfWhatWasNeverCalledGoWithTheirPackage) {
    CodeOptions given = options(Forms::image, 1);
    given.packages_max = 2;
    CodeCache cache(given);
    const auto counter = cache.add(arriving(*counter_, {Forms::image}), false);
    ASSERT_TRUE(counter && cache.load(*counter));
    EXPECT_EQ(cache.usage().static_bytes, 16U);
    ASSERT_TRUE(cache.add(large("other", 10), false));  // evicts
    EXPECT_EQ(cache.usage().static_bytes, 16U);
    EXPECT_EQ(call(cache, *cache.find("other:count")), 41);
    ASSERT_TRUE(cache.add(named("third"), false));
    EXPECT_EQ(cache.find("counter:count"), nullptr);
    EXPECT_EQ(cache.usage().static_bytes, 16U) << "those of what was called are its state";
    ASSERT_TRUE(cache.add(named("fourth"), false));
    EXPECT_NE(cache.find("other:count"), nullptr) << "as they are";
    ASSERT_TRUE(cache.add(large("other", 10), false));
    EXPECT_EQ(call(cache, *cache.find("other:count")), 42);
}

// The budget is one byte, so who leaves a function evicts all that is not in use.
TEST_F(BudgetTest, WhatTheLeaderRunsIsNotEvicted) {
    CodeCache cache(options(Forms::image, 1));
    ASSERT_TRUE(cache.add(build("one.c", kCounter), false));
    Function* one = cache.find("one:count");
    std::optional<EntryPoint> entry;
    (void)cache.add_leader();  // another compiler, which runs nothing
    Leading& leader = cache.add_leader();
    {
        const auto loaded = cache.enter(*one);
        ASSERT_TRUE(std::holds_alternative<Entered>(loaded));
        entry = cache.enter_leading(leader, *one);
        ASSERT_NE(*entry, nullptr);
    }
    ASSERT_TRUE(cache.add(build("two.c", kCounter), false));
    EXPECT_EQ(call(cache, *cache.find("two:count")), 41);
    ASSERT_EQ(one->target.load(), *entry) << "evicted while it runs";
    long answer = 0;
    (*entry)(nullptr, &answer, sizeof answer);
    EXPECT_EQ(answer, 41);
    cache.leave_leading(leader);
    EXPECT_EQ(one->target.load(), nullptr);
}

// What lies there next is another function.
TEST_F(BudgetTest, AFunctionIsFoundByItsAddressForAsLongAsItsCodeLiesThere) {
    CodeCache cache(options(Forms::image, 1));
    const EntryPoint resident = [](rove_here*, const void*, std::size_t) {};
    const auto own = cache.add_resident(FunctionId{{1}}, "own", resident);
    ASSERT_TRUE(own);
    EXPECT_EQ(cache.find(resident), *own);
    const std::vector<std::shared_ptr<PackageStore>> packages = {build("one.c", kCounter), build("two.c", kCounter)};
    for (int i = 0; i < 3; ++i)
        for (const auto& package : packages) {
            ASSERT_TRUE(cache.add(arriving(*package, {Forms::image}), false));
            Function* function = cache.find(package->function_ids().front());
            EntryPoint entry = nullptr;
            {
                const auto loaded = cache.enter(*function);
                ASSERT_TRUE(std::holds_alternative<Entered>(loaded));
                entry = std::get<Entered>(loaded).entry();
                EXPECT_EQ(cache.find(entry), function);
            }
            EXPECT_EQ(function->target.load(), nullptr) << "evicted: the budget is one byte";
            EXPECT_EQ(cache.find(entry), nullptr);
        }
}

TEST_F(BudgetTest, AFunctionIsFoundByTheAddressOfEitherForm) {
    CodeCache cache(options(Forms::both));
    ASSERT_TRUE(cache.add(build("one.c", kCounter), false));
    Function* function = cache.find("one:count");
    (void)call(cache, *function);
    const EntryPoint image = in_image(function);
    cache.wait_for_tiers();
    const EntryPoint compiled = function->target.load();
    EXPECT_NE(compiled, image);
    EXPECT_EQ(cache.find(compiled), function);
    EXPECT_EQ(cache.find(image), function);
}

// Each is evicted by the other's call; a table that is left behind is found by the next exception.
TEST_F(BudgetTest, UnwindTablesGoWithTheirCode) {
    constexpr const char* kThrower =
        "ROVE_ENTRY void go(rove_here*, const void* p, size_t n) { try { if (n == sizeof(long)) throw long(SALT); } "
        "catch (long "
        "thrown) { *(long*)p = thrown; } }";
    CodeCache cache(options(Forms::image, 0));
    const std::vector<std::shared_ptr<PackageStore>> packages = {
        build("one.cpp", std::string("#define SALT 1\n") + kThrower),
        build("two.cpp", std::string("#define SALT 2\nlong rove_pad(long x) { return x * 77 + 3; }\n") + kThrower)};
    for (int i = 0; i < 200; ++i)
        for (std::size_t which = 0; which < packages.size(); ++which) {
            ASSERT_TRUE(cache.add(arriving(*packages[which], {Forms::image}), false));
            ASSERT_EQ(call(cache, *cache.find(packages[which]->function_ids().front())), static_cast<long>(which) + 1);
        }
    EXPECT_GE(cache.usage().evictions, 399U);
}

// As an exception on its way asks for the table. The same bytes in the same place again, which nobody has registered, have none.
TEST_F(BudgetTest, NoUnwindTableIsFoundWhereCodeWas) {
    CodePool pool;
    std::unique_ptr<LoadedImage> image = LoadedImage::rehearse(pool);
    ASSERT_TRUE(image);
    auto* const code = static_cast<std::byte*>(image->address(wire::Segment::block, 0));
    void* bases[3]{};
    EXPECT_NE(_Unwind_Find_FDE(code + 4, static_cast<void*>(bases)), nullptr);
    const ByteBuffer block(code, code + 64);
    image.reset();
    const auto again = pool.allocate(block.size());
    ASSERT_TRUE(again);
    ASSERT_EQ(again->executable(), code);
    std::ranges::copy(block, again->writable());
    CodePool::make_ready(*again);
    EXPECT_EQ(_Unwind_Find_FDE(code + 4, static_cast<void*>(bases)), nullptr);
}

TEST_F(BudgetTest, PointersBetweenStaticsAreKeptOverEvictions) {
    CodeCache cache(options(Forms::image, 0));
    const auto package =
        build("pointers.c",
              "static int a = 1, b = 2, *p = &a;\nROVE_ENTRY void go(rove_here *h, const void *out, size_t n) { "
              "*(long *)out = *p; p = p == &a ? &b : &a; ++*p; (void)h, (void)n; }");
    ASSERT_FALSE(package->manifest().pinned);
    std::vector<long> answers;
    for (int i = 0; i < 6; ++i) {
        ASSERT_TRUE(cache.add(arriving(*package, {Forms::image}), false));
        answers.push_back(call(cache, *cache.find("pointers:go")));
    }
    EXPECT_EQ(answers, (std::vector<long>{1, 3, 2, 4, 3, 5}));
    EXPECT_EQ(cache.usage().evictions, 6U);
}

TEST_F(BudgetTest, DestructorsOfAnImageRunLastFirst) {
    {
        CodeCache cache(options(Forms::image));
        ASSERT_TRUE(
            cache.add(build("ends.c",
                            "void note(long);\n__attribute__((destructor(201))) static void first(void) { note(1); }\n"
                            "__attribute__((destructor(202))) static void second(void) { note(2); }\n"
                            "ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = 5; (void)h, "
                            "(void)n; }"),
                      false));
        EXPECT_EQ(call(cache, *cache.find("ends:go")), 5);
    }
    EXPECT_EQ(noted, (std::vector<long>{2, 1}));
}

}  // namespace
}  // namespace rove::code
