// Names that code lacks, by themselves: while it is linked, when they come, and what is said until then.
#include "code/lacking.hpp"

#include <gtest/gtest.h>

#include "arch/arch.hpp"
#include "base/cpu.hpp"
#include "cache_parts.hpp"
#include "given_compiler.hpp"

namespace rove::code {
namespace {

class LackingTest : public KeepingTest {
protected:
    // A package whose image is linked and loaded.
    [[nodiscard]] PackageCode& load(const Contents& contents) {
        PackageCode& package = know(contents);
        const LockOf lock(mutex_);
        NewCode code;
        const std::vector<void*> addresses = lacking_.find_imports(package, *contents.image, code.lacks);
        EXPECT_TRUE(lacking_.check(package, code.lacks));
        NewCode image = loaded(package, *contents.image);
        for (std::size_t import = 0; import < addresses.size(); ++import)
            if (addresses[import] != nullptr) image.image->put(import, addresses[import]);
        image.lacks = std::move(code.lacks);
        new_codes_.take_image(package, *contents.image, std::move(image));
        return package;
    }
    // A package that is compiled, and lacks its first import.
    [[nodiscard]] PackageCode& compile(const Contents& contents) {
        PackageCode& package = know(contents);
        const LockOf lock(mutex_);
        NewCode code;
        code.module = std::make_unique<GivenModule>();
        code.entries.resize(package.functions.size());
        for (std::size_t i = 0; i < package.functions.size(); ++i) code.name_entry(package, i, &places_[i]);
        Lacking::lack(code.lacks, package.store->manifest(), 0);
        new_codes_.take_module(package, std::move(code));
        return package;
    }
    [[nodiscard]] static GivenModule& module_of(const PackageCode& package) {
        return dynamic_cast<GivenModule&>(*package.module);
    }
    void bring(const std::string& name, void* address) {
        NameMap<void*> names;
        names[name] = address;
        (void)symbols_.add_interface("shelves", names);
    }
    [[nodiscard]] Status put(PackageCode& package, std::size_t function = 0) {
        const LockOf lock(mutex_);
        return lacking_.put_names(*package.functions[function]);
    }
    [[nodiscard]] std::string why(const PackageCode& package, std::size_t function = 0) {
        const LockOf lock(mutex_);
        return lacking_.why_no_entry(*package.functions[function]).message();
    }

    char places_[4] = {};
    Symbols symbols_{{{"there", &places_[3]}}};
    Lacking lacking_{options_.node, symbols_};
};

// ---- while code is linked

TEST_F(LackingTest, OnlyNamesThatTheImageAsksForAreLacked) {
    wire::Image image = image_of(1, 2);
    const std::string cpu = cpu_import(arch::kName, {"of-no-cpu"});
    const PackageCode& package = know({.name = "sum", .imports = {"there", "nowhere", "weak", cpu}, .image = image});
    Lacks lacks;
    const std::vector<void*> addresses = lacking_.find_imports(package, image, lacks);
    EXPECT_EQ(addresses, (std::vector<void*>{&places_[3], nullptr, nullptr, nullptr}));
    EXPECT_EQ(lacks, Lacks{std::byte{0b1010}}) << "the CPU lacks one, which no address is of";
}

TEST_F(LackingTest, WhatThePackageAsAWholeNeedsFailsIt) {
    PackageCode& package = know({.name = "sum",
                                 .entries = {"one", "two"},
                                 .imports = {"first", "second"},
                                 .needs = {{"second"}, {"first"}, {}}});
    const wire::Manifest& manifest = package.store->manifest();
    Lacks lacks;
    Lacking::lack(lacks, manifest, 0);
    EXPECT_TRUE(lacking_.check(package, lacks)) << "one entry alone needs it";
    EXPECT_FALSE(package.lacks_names);
    Lacking::lack(lacks, manifest, 1);
    const Status failed = lacking_.check(package, lacks);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), ErrorCode::failed);
    EXPECT_EQ(failed.error().message(), "no symbol 'second' for sum on node 7; " + Lacking::remedy(package));
    EXPECT_TRUE(package.lacks_names) << "an interface may bring it";
}

TEST_F(LackingTest, ALibraryThatIsLeftOutIsTheRemedy) {
    PackageCode& package = know({.name = "sum"});
    EXPECT_TRUE(Lacking::remedy(package).starts_with("load an interface that has it"));
    package.scope.left_out = "install its library";
    EXPECT_EQ(Lacking::remedy(package), "install its library");
}

TEST_F(LackingTest, WhatProgramsCallIsNotForFunctions) {
    PackageCode& package =
        know({.name = "sum", .entries = {"go"}, .imports = {"rove_error_name"}, .needs = {{"rove_error_name"}, {}}});
    Lacks lacks;
    Lacking::lack(lacks, package.store->manifest(), 0);
    const Status failed = lacking_.check(package, lacks);
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().message().find(
                  "'rove_error_name' for sum:go on node 7; functions that travel cannot call the part of rove.h"),
              std::string::npos)
        << failed.error().message();
}

TEST_F(LackingTest, ThreadLocalsOfLibrariesHaveTheirOwnRemedy) {
    PackageCode& package = know({.name = "sum",
                                 .entries = {"go"},
                                 .imports = {"__emutls_v.counted", "nowhere"},
                                 .needs = {{"__emutls_v.counted", "nowhere"}, {}}});
    Lacks lacks;
    Lacking::lack(lacks, package.store->manifest(), 0);
    const Status failed = lacking_.check(package, lacks);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message(),
              "sum:go on node 7 uses the thread-local variable 'counted' of a library, which code that travels cannot "
              "reach; let a function of that library return its address");
    Lacking::lack(lacks, package.store->manifest(), 1);
    const Status also = lacking_.check(package, lacks);
    EXPECT_TRUE(!also && also.error().message().starts_with("no symbol ")) << also.error().message();
}

TEST_F(LackingTest, WhatTheCpuLacksIsSaidFirst) {
    PackageCode& package = know({.name = "sum",
                                 .entries = {},
                                 .imports = {"nowhere", cpu_import(arch::kName, {"of-no-cpu"})},
                                 .bitcode = any_bytes(9)});
    Lacks lacks;
    Lacking::lack_of_cpu(lacks, package.store->manifest());
    EXPECT_EQ(lacks, Lacks{std::byte{2}});
    Lacking::lack(lacks, package.store->manifest(), 0);
    const Status failed = lacking_.check(package, lacks);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), ErrorCode::unsupported);
    EXPECT_TRUE(failed.error().message().starts_with("sum was compiled for a CPU with of-no-cpu"))
        << failed.error().message();
}

// ---- when names come

// Two entries; the first needs `shelf` and the second `board` as well.
Contents two_entries() {
    wire::Image image = image_of(2, 2);
    image.relocations[0].addend = 8;
    return {.name = "sum",
            .entries = {"one", "two"},
            .imports = {"shelf", "board"},
            .needs = {{}, {"shelf"}, {"shelf", "board"}},
            .image = image};
}
constexpr std::size_t kShelf = 2 * kEntryBytes, kBoard = kShelf + 8;  // where the image has their addresses

TEST_F(LackingTest, ANameThatComesIsPutOnce) {
    PackageCode& package = load(two_entries());
    Function& one = *package.functions[0];
    EXPECT_TRUE(put(package));
    EXPECT_EQ(one.target, nullptr) << "none has come";
    long shelf[2] = {};
    bring("shelf", shelf);
    EXPECT_TRUE(put(package));
    EXPECT_NE(one.target, nullptr);
    EXPECT_EQ(address_at(*package.image, kShelf), &shelf[1]) << "where the code has an offset in it";
    EXPECT_EQ(package.functions[1]->target, nullptr) << "it lacks another one";
    long board = 0;
    bring("board", &board);
    EXPECT_TRUE(put(package, 1));
    EXPECT_NE(package.functions[1]->target, nullptr);
    EXPECT_EQ(address_at(*package.image, kShelf), &shelf[1]);
    EXPECT_EQ(address_at(*package.image, kBoard), &board);
    EXPECT_TRUE(package.image_lacks.empty());
}

TEST_F(LackingTest, OnlyWhatTheFunctionNeedsIsPut) {
    PackageCode& package = load(two_entries());
    long shelf[2] = {}, board = 0;
    bring("shelf", shelf);
    bring("board", &board);
    EXPECT_TRUE(put(package, 0));
    EXPECT_EQ(address_at(*package.image, kBoard), nullptr);
    EXPECT_EQ(package.image_lacks, Lacks{std::byte{2}});
}

TEST_F(LackingTest, ModulesGetTheirNames) {
    PackageCode& package = compile({.name = "sum", .imports = {"shelf"}, .bitcode = any_bytes(9)});
    bring("shelf", &places_[2]);
    module_of(package).has_memory = false;
    const Status refused = put(package);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
    EXPECT_EQ(refused.error().message(), "sum:run on node 7: there is no memory; call it later");
    EXPECT_EQ(package.functions[0]->target, nullptr);
    module_of(package).has_memory = true;
    EXPECT_TRUE(put(package));
    EXPECT_EQ(module_of(package).was_put, (std::vector<std::pair<std::string, void*>>{{"shelf", &places_[2]}}));
    EXPECT_EQ(reinterpret_cast<void*>(package.functions[0]->target.load()), &places_[0]);
}

// ---- what is said until then

TEST_F(LackingTest, WhyAFunctionHasNoEntryIsSaidOnceForEachGenerationOfNames) {
    PackageCode& package = load(two_entries());
    EXPECT_EQ(why(package, 1), "no symbol 'shelf', 'board' for sum:two on node 7; " + Lacking::remedy(package));
    package.functions[1]->why_none->second = Error(ErrorCode::failed, "it is kept");
    EXPECT_EQ(why(package, 1), "it is kept");
    bring("shelf", &places_[0]);
    EXPECT_TRUE(put(package, 1));
    EXPECT_EQ(why(package, 1), "no symbol 'board' for sum:two on node 7; " + Lacking::remedy(package));
}

TEST_F(LackingTest, AnEntryThatThePackageLacksIsSaid) {
    const PackageCode& package = load({.name = "sum", .image = image_of(1)});
    EXPECT_EQ(why(package), "sum:run on node 7: its package defines no such entry");
}

TEST_F(LackingTest, ANameThatCannotBePutIsTooLate) {
    PackageCode& package = compile({.name = "sum", .imports = {"shelf"}, .bitcode = any_bytes(9)});
    module_of(package).takes_names = false;
    bring("shelf", &places_[2]);
    EXPECT_TRUE(put(package));
    EXPECT_EQ(package.functions[0]->target, nullptr);
    EXPECT_TRUE(module_of(package).was_put.empty());
    EXPECT_TRUE(why(package).starts_with(
        "no symbol 'shelf' for sum:run on node 7; load an interface that has it before the first call"))
        << why(package);
}

}  // namespace
}  // namespace rove::code
