// Names that come when the code that asks for them is loaded already: they are put in their places, and nothing else changes.
#include <atomic>
#include <future>

#include "bitcode/compiler.hpp"
#include "cache_fixture.hpp"
#include "given_compiler.hpp"
#include "package/pack.hpp"

namespace rove::code {
namespace {

const std::string kTwo = "long elsewhere(long);\n" + entry("one", "1") + entry("three", "elsewhere(3)");

// LLVM's compiler, and what is done before and after each compile.
class Hooked final : public CompilesOnly {
public:
    std::function<void()> before = [] {}, after = [] {};
    Result<std::unique_ptr<bitcode::CompiledModule>> compile(const bitcode::CompileRequest& request) override {
        before();
        auto made = (*bitcode::compiler())->compile(request);
        after();
        return made;
    }
};

class LaterNames : public CacheTest {
protected:
    void add(CodeCache& cache, const std::string& file, const std::string& text, const std::vector<Forms>& forms) {
        ASSERT_TRUE(cache.add(arriving(*build(file, text), forms), false));
    }
    static void load(CodeCache& cache, const PackageStore& interface) {
        const auto came = cache.add(arriving(interface, {Forms::image, Forms::bitcode}), false);
        ASSERT_TRUE(came);
        const auto loaded = cache.load_interface(*came);
        EXPECT_TRUE(loaded) << loaded.error().message();
    }
    void load_elsewhere(CodeCache& cache) { load(cache, *elsewhere()); }
    std::shared_ptr<PackageStore> elsewhere() {
        return build("elsewhere.c", "long elsewhere(long n) { return 100 + n; }", true);
    }
    static CodeOptions with(bitcode::Compiler& compiler) {
        CodeOptions given = options(Forms::both);
        given.compiler = [&compiler]() -> Result<bitcode::Compiler*> { return &compiler; };
        return given;
    }
    // The same with other needs: rows of bits, of the whole and of each entry.
    static std::shared_ptr<PackageStore> with_needs(const PackageStore& whole, ByteBuffer needs) {
        wire::Manifest manifest = whole.manifest();
        manifest.needs = std::move(needs);
        auto package = PackageStore::from_manifest(wire::encode(manifest)).value();
        for (std::size_t i = 0; i < manifest.slices.size(); ++i)
            EXPECT_TRUE(package->add_slice(i, *whole.stored_slice(i)));
        return package;
    }
    // Its image, longer by bytes that nothing compresses.
    static std::shared_ptr<PackageStore> larger(const PackageStore& small, std::size_t bytes, bool pinned) {
        const ByteBuffer raw = small.raw_slice(*small.slice_index(host_triple(), Forms::image)).value();
        wire::Image image = wire::decode_image(raw, small.manifest().imports.size()).value();
        unsigned value = 7;
        for (std::size_t i = 0; i < bytes; ++i)
            image.block.push_back(static_cast<std::byte>((value = value * 1664525 + 1013904223) >> 24U));
        wire::Manifest manifest = small.manifest();
        manifest.pinned = pinned;
        ByteBuffer stored;
        manifest.slices = {make_slice(std::string(host_triple()), Forms::image, wire::encode(image), stored, true)};
        auto package = PackageStore::from_manifest(wire::encode(manifest)).value();
        EXPECT_TRUE(package->add_slice(0, stored));
        return package;
    }
};

TEST_F(LaterNames, IsThereWhileTheBitcodeIsCompiled) {
    Hooked compiler;
    std::promise<void> go;
    compiler.before = [gone = go.get_future().share()] { gone.wait(); };
    CodeCache cache(with(compiler));
    add(cache, "two.c", kTwo, {Forms::image, Forms::bitcode});
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    load_elsewhere(cache);
    EXPECT_EQ(error_of(cache, *cache.find("two:three")), "");
    go.set_value();
    cache.wait_for_tiers();
    RanAs ran{};
    EXPECT_EQ(call(cache, *cache.find("two:three"), &ran), 103);
    EXPECT_EQ(ran, RanAs::bitcode) << "which has got the name, too";
}

// The image has got it already when the code that was linked without it is there.
TEST_F(LaterNames, ComesToBitcodeThatTheImageWasAheadOf) {
    Hooked compiler;
    CodeCache cache(with(compiler));
    const auto interface = elsewhere();
    std::atomic<bool> is_first = true;
    compiler.after = [&] {
        if (!is_first.exchange(false)) return;  // the interface is compiled, too
        load(cache, *interface);
        EXPECT_EQ(error_of(cache, *cache.find("two:three")), "");
    };
    add(cache, "two.c", kTwo, {Forms::image, Forms::bitcode});
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    cache.wait_for_tiers();
    RanAs ran{};
    EXPECT_EQ(call(cache, *cache.find("two:three"), &ran), 103);
    EXPECT_EQ(ran, RanAs::bitcode);
}

TEST_F(LaterNames, MayComeWhileThePackageIsLinked) {
    Hooked compiler;
    CodeCache cache(with(compiler));
    const auto interface = elsewhere();
    compiler.after = [&] { load(cache, *interface); };
    add(cache, "two.c", kTwo, {Forms::bitcode});
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    EXPECT_EQ(call(cache, *cache.find("two:three")), 103);
}

TEST_F(LaterNames, MayComeWhileAPackageThatNeedsThemAllIsLinked) {
    Hooked compiler;
    CodeCache cache(with(compiler));
    const auto interface = elsewhere();
    compiler.after = [&] { load(cache, *interface); };
    const auto two = build("two.c", kTwo);
    const auto all = with_needs(*two, {});
    ASSERT_TRUE(cache.add(arriving(*all, {Forms::bitcode}), false));
    (void)cache.enter(*cache.find("two:three"));
    cache.wait_for_tiers();
    compiler.after = [] {};
    EXPECT_EQ(call(cache, *cache.find("two:three")), 103);
}

TEST_F(LaterNames, NeedNoRoom) {
    CodeCache cache(options(Forms::image, 2U << 20U));  // 1 MiB of it for pinned code
    ASSERT_TRUE(cache.add(larger(*build("two.c", kTwo), 600'000, true), false));
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    load_elsewhere(cache);
    const auto before = cache.usage();
    EXPECT_EQ(call(cache, *cache.find("two:three")), 103);
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    EXPECT_EQ(cache.usage().pinned_bytes, before.pinned_bytes);
    EXPECT_EQ(cache.usage().loads, before.loads) << "nothing is loaded for a name";
}

TEST_F(LaterNames, NeedNoSlice) {
    CodeCache cache(options(Forms::image, 1U << 20U));
    const auto two = larger(*build("two.c", kTwo), 10'000, true);
    ASSERT_TRUE(cache.add(two, false));
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    const auto other = build("other.c", kCounter);
    for (std::size_t i = 0; i < 3; ++i)  // they push its slice out
        ASSERT_TRUE(cache.add(larger(*other, 400'000 + i, false), false));
    ASSERT_EQ(two->stored_slice(0), nullptr);
    load_elsewhere(cache);
    EXPECT_EQ(call(cache, *cache.find("two:three")), 103);
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
}

TEST_F(LaterNames, OtherNamesChangeNothing) {
    CodeCache cache(options(Forms::image));
    add(cache, "two.c", kTwo, {Forms::image});
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    load(cache, *build("other.c", "long other(void) { return 1; }", true));
    const std::size_t loads = cache.usage().loads;
    EXPECT_NE(error_of(cache, *cache.find("two:three")), "");
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    EXPECT_EQ(cache.usage().loads, loads);
}

// The bitcode was compiled before there was an image, and made the statics.
TEST_F(LaterNames, StaticsGoOn) {
    CodeCache cache(options(Forms::both));
    const auto whole =
        build("two.c", "long elsewhere(long); static long calls; static long counted(void) { return ++calls; }\n" +
                           entry("one", "counted()") + entry("three", "elsewhere(counted())"));
    ASSERT_TRUE(cache.add(arriving(*whole, {Forms::bitcode}), false));
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    EXPECT_EQ(call(cache, *cache.find("two:one")), 2);
    ASSERT_TRUE(cache.add(arriving(*whole, {Forms::image}), false));
    load_elsewhere(cache);
    EXPECT_EQ(call(cache, *cache.find("two:three")), 103);
    EXPECT_EQ(call(cache, *cache.find("two:one")), 4);
}

TEST_F(LaterNames, AddressesThatAreKeptGoOn) {
    CodeCache cache(options(Forms::image));
    add(cache, "kept.c",
        "long elsewhere(long); static long f(long n) { return n + 1; }\nstatic long (*volatile kept)(long);\n" +
            entry("set", "(kept = f, 1)") + entry("same", "kept == f") + entry("three", "elsewhere(3)"),
        {Forms::image});
    EXPECT_EQ(call(cache, *cache.find("kept:set")), 1);
    load_elsewhere(cache);
    EXPECT_EQ(call(cache, *cache.find("kept:three")), 103);
    EXPECT_EQ(call(cache, *cache.find("kept:same")), 1);
}

// A function whose address is kept is the image's (bitcode/anchors.hpp), also where the bitcode of its caller runs.
TEST_F(LaterNames, BothFormsGetThem) {
    CodeCache cache(options(Forms::both));
    add(cache, "kept.c",
        "long elsewhere(long); static long f(long n) { return elsewhere(n) + 1; }\nstatic long (*volatile "
        "kept)(long);\n" +
            entry("one", "1") + entry("three", "(kept = f, kept(3))"),
        {Forms::image, Forms::bitcode});
    EXPECT_EQ(call(cache, *cache.find("kept:one")), 1);
    cache.wait_for_tiers();
    load_elsewhere(cache);
    RanAs ran = RanAs::image;
    EXPECT_EQ(call(cache, *cache.find("kept:three"), &ran), 104);
    EXPECT_EQ(ran, RanAs::bitcode);
}

// It was compiled when there was the name, and linked as an image when there was none.
TEST_F(LaterNames, TheImageOfCompiledCodeGetsThem) {
    Hooked compiler;
    CodeCache cache(with(compiler));
    const auto interface = elsewhere();
    compiler.before = [&] { load(cache, *interface); };
    add(cache, "kept.c",
        "long elsewhere(long); static long f(long n) { return elsewhere(n) + 1; }\nstatic long (*volatile "
        "kept)(long);\n" +
            entry("one", "1") + entry("three", "(kept = f, kept(3))"),
        {Forms::image, Forms::bitcode});
    EXPECT_EQ(call(cache, *cache.find("kept:one")), 1);
    cache.wait_for_tiers();
    RanAs ran = RanAs::image;
    EXPECT_EQ(call(cache, *cache.find("kept:three"), &ran), 104);
    EXPECT_EQ(ran, RanAs::bitcode);
}

// Each name for itself, and an entry that needs several when all are there.
TEST_F(LaterNames, MayComeOneAfterTheOther) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        CodeCache cache(options(forms));
        add(cache, "names.c",
            "long first(long); __attribute__((noplt)) long second(long); extern long third;\n"
            "static long (*const table[2])(long) = {first, second};\n" +
                entry("one", "1") + entry("a", "first(1)") + entry("b", "first(2) + second(2)") +
                entry("c", "table[n & 1](3) + third"),
            {forms == Forms::image ? Forms::image : Forms::bitcode});
        EXPECT_EQ(call(cache, *cache.find("names:one")), 1);
        load(cache, *build("first.c", "long first(long n) { return 100 + n; }", true));
        const std::string error = error_of(cache, *cache.find("names:b"));
        EXPECT_NE(error.find("no symbol 'second'"), std::string::npos) << error;
        EXPECT_EQ(call(cache, *cache.find("names:a")), 101);
        load(cache, *build("second.c", "long second(long n) { return 1000 + n; }", true));
        EXPECT_EQ(call(cache, *cache.find("names:b")), 1104);
        EXPECT_NE(error_of(cache, *cache.find("names:c")).find("no symbol 'third'"), std::string::npos);
        load(cache, *build("third.c", "long third = 20000; long get_third(void) { return third; }", true));
        EXPECT_EQ(call(cache, *cache.find("names:c")), 20103);
        EXPECT_EQ(call(cache, *cache.find("names:a")), 101);
    }
}

// Assembly that has a name in an instruction.
TEST_F(LaterNames, WhatTheCodeItselfHoldsComesTooLate) {
#ifdef __x86_64__
    const auto two =
        build("two.c", "long elsewhere(long);\nlong (*volatile kept)(long) = elsewhere;\n" + entry("one", "1") +
                           "static long far(void) { long at; __asm__(\"movabsq $elsewhere, %0\" : \"=r\"(at)); "
                           "return ((long (*)(long))at)(3); }\n" +
                           entry("three", "kept ? far() : 0"));
    ASSERT_EQ(two->manifest().imports, std::vector<std::string>{"elsewhere"});
    const auto package = with_needs(*two, {std::byte{0}, std::byte{0}, std::byte{1}});
    CodeCache cache(options(Forms::bitcode));
    ASSERT_TRUE(cache.add(arriving(*package, {Forms::bitcode}), false));
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    load_elsewhere(cache);
    const std::string error = error_of(cache, *cache.find("two:three"));
    EXPECT_NE(error.find("before the first call"), std::string::npos) << error;
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    CodeCache other(options(Forms::bitcode));
    load_elsewhere(other);
    ASSERT_TRUE(other.add(arriving(*package, {Forms::bitcode}), false));
    EXPECT_EQ(call(other, *other.find("two:three")), 103);
#endif
}

// Names are put in their places while the engine's lock is held.
TEST_F(LaterNames, WhatHasTooManyPlacesComesTooLate) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        CodeCache cache(options(forms));
        add(cache, "two.c",
            "long elsewhere(long);\nstatic long (*const table[70000])(long) = {[0 ... 69999] = elsewhere};\n"
            "static volatile long at = 7;\n" +
                entry("one", "1") + entry("three", "table[at](3)"),
            {Forms::image, Forms::bitcode});
        EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
        load_elsewhere(cache);
        const std::string error = error_of(cache, *cache.find("two:three"));
        EXPECT_NE(error.find("before the first call"), std::string::npos) << error;
        EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    }
}

// What needs no name of theirs runs, and an interface may bring what they do not.
TEST_F(LaterNames, LibrariesThatAreNotThereAreToldWhereANameIsLacked) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        const auto with_library = [&](ByteBuffer needs) {
            const auto two = build("two.c", kTwo);
            wire::Manifest manifest = two->manifest();
            manifest.dependencies = {"libm.so.6", "libnowhere.so.9", "libelse.so"};
            if (!needs.empty()) manifest.needs = std::move(needs);
            auto package = PackageStore::from_manifest(wire::encode(manifest)).value();
            for (std::size_t i = 0; i < manifest.slices.size(); ++i)
                EXPECT_TRUE(package->add_slice(i, *two->stored_slice(i)));
            return package;
        };
        const std::vector<std::string> wanted = {"no symbol 'elsewhere' for two", "on node 7",
                                                 "its library libnowhere.so.9 cannot be opened (libnowhere.so.9: ",
                                                 "; install what is lacking on that node, and start that node again",
                                                 "its library libelse.so cannot be opened ("};
        const auto expect_told = [&](const std::string& error) {
            for (const std::string& each : wanted) EXPECT_NE(error.find(each), std::string::npos) << error;
            EXPECT_EQ(error.find("node 7", error.find("node 7") + 1), std::string::npos) << error;
        };
        CodeCache cache(options(forms));
        ASSERT_TRUE(cache.add(arriving(*with_library({}), {Forms::image, Forms::bitcode}), false));
        EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
        expect_told(error_of(cache, *cache.find("two:three")));
        load_elsewhere(cache);
        EXPECT_EQ(call(cache, *cache.find("two:three")), 103);
        // A package that needs the name as a whole.
        CodeCache other(options(forms));
        ASSERT_TRUE(other.add(
            arriving(*with_library({std::byte{1}, std::byte{0}, std::byte{0}}), {Forms::image, Forms::bitcode}),
            false));
        (void)other.enter(*other.find("two:one"));
        other.wait_for_tiers();
        expect_told(error_of(other, *other.find("two:one")));
    }
}

TEST_F(LaterNames, AFewOfManyAreSaid) {
    std::string names, sum = "0";
    for (int i = 0; i < 20; ++i) {
        names += "long elsewhere" + std::to_string(i) + "(void);\n";
        sum += " + elsewhere" + std::to_string(i) + "()";
    }
    CodeCache cache(options(Forms::image));
    add(cache, "many.c", names + entry("one", "1") + entry("three", sum), {Forms::image});
    EXPECT_EQ(call(cache, *cache.find("many:one")), 1);
    const std::string error = error_of(cache, *cache.find("many:three"));
    EXPECT_NE(error.find(" and 12 more for many:three on node 7"), std::string::npos) << error;
}

// The address at which a function is known goes with its code, and no other one does.
TEST_F(LaterNames, AnEvictedPackagesAddressesGoAlone) {
    CodeCache cache(options(Forms::image, 1U << 20U));
    const auto two = larger(*build("two.c", kTwo), 400'000, false);
    ASSERT_TRUE(cache.add(two, false));
    EXPECT_EQ(call(cache, *cache.find("two:one")), 1);
    const EntryPoint one = in_image(cache.find("two:one")), three = in_image(cache.find("two:three"));
    EXPECT_EQ(cache.find(one), cache.find("two:one"));
    EXPECT_EQ(cache.find(three), cache.find("two:three")) << "whether or not it can run";
    const auto other = build("other.c", entry("go", "9") + entry("on", "8"));
    ASSERT_TRUE(cache.add(larger(*other, 500'000, false), false));
    Function* go = cache.find("other:go");
    ASSERT_EQ(call(cache, *go), 9);
    (void)cache.usage();
    ASSERT_TRUE(cache.add(larger(*build("third.c", kCounter), 20'000, false), false));
    ASSERT_EQ(cache.find("two:one")->target.load(), nullptr) << "it was evicted";
    for (const EntryPoint entry : {one, three})
        if (Function* at = cache.find(entry)) EXPECT_EQ(at->package, go->package);
    EXPECT_EQ(cache.find(go->target.load()), go);
}

}  // namespace
}  // namespace rove::code
