// Each entry of a package links by itself: what one lacks is no other one's trouble.
#include "arch/arch.hpp"
#include "base/cpu.hpp"
#include "cache_fixture.hpp"

namespace rove::code {
namespace {

class Entries : public CacheTest, public testing::WithParamInterface<Forms> {
protected:
    std::shared_ptr<PackageStore> add(CodeCache& cache, const std::string& file, const std::string& text) {
        const auto package = build(file, text);
        const Forms form = GetParam() == Forms::bitcode ? Forms::bitcode : Forms::image;
        const auto came =
            GetParam() == Forms::both ? arriving(*package, {Forms::image, Forms::bitcode}) : arriving(*package, {form});
        EXPECT_TRUE(cache.add(came, false));
        return package;
    }
    CodeCache cache_{options(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(Forms, Entries, testing::Values(Forms::image, Forms::bitcode, Forms::both),
                         [](const auto& forms) {
                             return forms.param == Forms::image     ? "image"
                                    : forms.param == Forms::bitcode ? "bitcode"
                                                                    : "both";
                         });

const std::string kThree = "long elsewhere(long); static long calls; static long counted(void) { return ++calls; }\n";

TEST_P(Entries, OneThatLacksANameKeepsNoOtherFromRunning) {
    add(cache_, "three.c",
        kThree + entry("one", "counted()") + entry("two", "counted() + 10") + entry("three", "elsewhere(counted())"));
    EXPECT_EQ(call(cache_, *cache_.find("three:one")), 1);
    EXPECT_EQ(call(cache_, *cache_.find("three:two")), 12);
    const std::string error = error_of(cache_, *cache_.find("three:three"));
    EXPECT_NE(error.find("no symbol 'elsewhere' for three:three on node 7"), std::string::npos) << error;
    EXPECT_EQ(call(cache_, *cache_.find("three:one")), 3) << "it goes on";
}

TEST_P(Entries, ANameThatComesLaterIsFound) {
    add(cache_, "three.c", kThree + entry("one", "counted()") + entry("three", "elsewhere(counted())"));
    EXPECT_EQ(call(cache_, *cache_.find("three:one")), 1);
    EXPECT_NE(error_of(cache_, *cache_.find("three:three")), "");
    const auto interface = build("elsewhere.c", "long elsewhere(long n) { return 100 + n; }", true);
    ASSERT_TRUE(cache_.add(interface, false));
    ASSERT_TRUE(cache_.load_interface(interface));
    EXPECT_EQ(call(cache_, *cache_.find("three:three")), 102) << "with the statics that the others had";
    EXPECT_EQ(call(cache_, *cache_.find("three:one")), 3);
}

TEST_P(Entries, AWeakNameIsNullWhereThereIsNone) {
    const std::string text = "long maybe(long) __attribute__((weak)); extern long value __attribute__((weak));\n" +
                             entry("go", "(maybe ? maybe(1) : 7) + (&value ? value : 20)");
    add(cache_, "weak.c", text);
    EXPECT_EQ(call(cache_, *cache_.find("weak:go")), 27);
    CodeCache other(options(GetParam()));
    const auto interface = build("maybe.c", "long maybe(long n) { return 50 + n; } long value = 300;", true);
    ASSERT_TRUE(other.add(interface, false));
    ASSERT_TRUE(other.load_interface(interface));
    add(other, "weak.c", text);
    EXPECT_EQ(call(other, *other.find("weak:go")), 351);
}

// What runs before any entry, and what all of them share.
TEST_P(Entries, WhatThePackageNeedsAsAWholeAllNeed) {
    add(cache_, "built.cpp",
        "extern \"C\" long elsewhere(long); static long made = elsewhere(1); extern \"C\" " + entry("go", "made"));
    (void)cache_.enter(*cache_.find("built:go"));  // its constructor is for a worker
    cache_.wait_for_tiers();
    EXPECT_NE(error_of(cache_, *cache_.find("built:go")).find("'elsewhere'"), std::string::npos);
    add(cache_, "table.c",
        "long elsewhere(long); static long (*volatile table[2])(long) = {elsewhere, 0};\n" +
            entry("set", "(table[n & 1] = 0, 1)") + entry("get", "table[n & 1] != 0"));
    (void)cache_.enter(*cache_.find("table:get"));
    cache_.wait_for_tiers();
    EXPECT_NE(error_of(cache_, *cache_.find("table:get")).find("'elsewhere'"), std::string::npos);
}

TEST_P(Entries, TheManifestSaysWhatEachNeeds) {
    const auto package = build("three.c", kThree + entry("one", "counted()") + entry("two", "elsewhere(2)"));
    const wire::Manifest& manifest = package->manifest();
    ASSERT_EQ(manifest.imports, std::vector<std::string>{"elsewhere"});
    EXPECT_FALSE(manifest.whole_needs(0));
    EXPECT_FALSE(manifest.entry_needs(0, 0));
    EXPECT_TRUE(manifest.entry_needs(1, 0));
    EXPECT_TRUE(build("one.c", entry("one", "1"))->manifest().needs.empty()) << "all need all";
}

#ifdef __x86_64__
// What xop takes, and the CPU of this machine lacks: some that lack it have sse4a.
std::string lacked_for_xop() {
    return lacked_by_cpu("rove.cpu.x86_64.sse4a+fma4+xop");
}

// XOP: bought with one AMD of 2011, and gone in 2017.
TEST_P(Entries, OneForAnotherCpuSaysSo) {
    const std::string has = "static volatile int has_xop;\n", xop = "__attribute__((target(\"xop,avx2\"))) ";
    add(cache_, "cpus.c",
        has + xop + entry("mixed", "2") + entry("plain", "3") + "__attribute__((target(\"sse3\"))) " +
            entry("old", "4") + xop + "static long chosen(long n) { return n * 3; }\n" +
            entry("chooses", "has_xop ? chosen(1) : 5"));
    ASSERT_FALSE(lacked_by_cpu("rove.cpu.x86_64.xop").empty()) << "choose another extension for this test";
    EXPECT_EQ(call(cache_, *cache_.find("cpus:plain")), 3);
    EXPECT_EQ(call(cache_, *cache_.find("cpus:old")), 4);
    EXPECT_EQ(call(cache_, *cache_.find("cpus:chooses")), 5);
    EXPECT_EQ(error_of(cache_, *cache_.find("cpus:mixed")),
              "cpus:mixed was compiled for a CPU with " + lacked_for_xop() +
                  ", which that of node 7 is not; build it without -march and -m options: a node compiles it for its "
                  "own CPU");
    EXPECT_EQ(call(cache_, *cache_.find("cpus:plain")), 3) << "it goes on";
}

// Those that came after the compiler's own function to ask for them.
TEST_P(Entries, OneForALaterCpuSaysSo) {
    unsigned lacking = 0;
    for (const std::string name : {"avx512fp16", "avxifma", "sm4", "egpr"}) {
        const std::string lacked = lacked_by_cpu("rove.cpu.x86_64." + name);
        if (lacked.empty()) continue;
        ++lacking;
        add(cache_, name + ".c", "__attribute__((target(\"" + name + "\"))) " + entry("go", "1"));
        (void)cache_.enter(*cache_.find(name + ":go"));
        cache_.wait_for_tiers();
        EXPECT_NE(error_of(cache_, *cache_.find(name + ":go")).find(name), std::string::npos);
    }
    EXPECT_GT(lacking, 0U) << "choose another extension for this test";
    EXPECT_EQ(lacked_by_cpu("rove.cpu.x86_64.sse3"), "") << "all that run this have it";
    EXPECT_EQ(lacked_by_cpu("rove.cpu.x86_64.sse3+no-such+xop"), "no-such, xop");
}

// The node's CPU rounds a product and a sum once, where it may. A function that was compiled for others rounds twice in every form, as in its own
// program, and one that was compiled for such CPUs once.
TEST_P(Entries, ProductsAreRoundedAsInTheirProgram) {
    const std::string text =
        "static volatile double tenth = 0.1, ten = 10, minus_one = -1;\n"
        "static volatile float third = 1.0f / 3, three = 3;\n" +
        entry("twice", "tenth * ten + minus_one == 0 && third * three + (float)minus_one == 0") +
        "static double product_and_sum(double a, double b, double c) { return a * b + c; }\n" +
        entry("computed", "product_and_sum(0.1, 10, -1) != 0") + "__attribute__((target(\"fma\"))) " +
        entry("once", "tenth * ten + minus_one != 0");
    add(cache_, "rounds.c", text);
    EXPECT_EQ(call(cache_, *cache_.find("rounds:twice")), 1);
    EXPECT_EQ(call(cache_, *cache_.find("rounds:computed")), 1) << "by the compiler, which rounds once";
    if (arch::cpu_has("fma")) EXPECT_EQ(call(cache_, *cache_.find("rounds:once")), 1);
}

TEST_P(Entries, AConstructorForAnotherCpuKeepsAllFromRunning) {
    add(cache_, "begun.c",
        "static volatile long begun; __attribute__((constructor, target(\"xop\"))) static void begin(void) { begun = "
        "1; }\n" +
            entry("go", "begun"));
    (void)cache_.enter(*cache_.find("begun:go"));  // its constructor is for a worker
    cache_.wait_for_tiers();
    EXPECT_NE(
        error_of(cache_, *cache_.find("begun:go")).find("begun:go was compiled for a CPU with " + lacked_for_xop()),
        std::string::npos);
}
#endif

}  // namespace
}  // namespace rove::code
