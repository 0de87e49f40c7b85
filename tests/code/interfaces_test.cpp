// Interfaces by themselves: what becomes of their names, and how they stay and end.
#include "code/interfaces.hpp"

#include <gtest/gtest.h>

#include "cache_parts.hpp"
#include "given_compiler.hpp"

namespace rove::code {
namespace {

class InterfacesTest : public KeepingTest {
protected:
    // A package that is loaded and has those names.
    [[nodiscard]] PackageCode& offer(const std::string& name, const std::vector<std::string>& exports,
                                     bool resident = false, std::uint32_t block_bytes = 64) {
        wire::Image image = image_of(0);
        image.block.resize(block_bytes);
        PackageCode& package =
            know({.name = name, .entries = {}, .exports = exports, .interface = true, .image = image}, resident);
        const LockOf lock(mutex_);
        NewCode code = loaded(package, image);
        for (std::size_t i = 0; i < exports.size(); ++i)
            code.exported[exports[i]] = code.image->address(wire::Segment::block, 8 * i);
        new_codes_.take_image(package, image, std::move(code));
        return package;
    }
    [[nodiscard]] Result<LoadReport> link(PackageCode& package) {
        const LockOf lock(mutex_);
        return interfaces_.link(package);
    }

    char of_the_node_ = 0;
    Symbols symbols_{{{"of_the_node", &of_the_node_}}};
    Interfaces interfaces_{lock_, symbols_, budgets_, evictor_};
};

TEST_F(InterfacesTest, WhatArrivesLaterIsLinkedToItsNames) {
    PackageCode& package = offer("shelves", {"shelf", "board"});
    const std::uint64_t before = symbols_.generation();
    const auto report = link(package);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_TRUE(report->replaced.empty() && report->kept.empty());
    EXPECT_EQ(symbols_.of_interfaces("shelf"), package.exported.at("shelf"));
    EXPECT_EQ(symbols_.of_interfaces("board"), package.exported.at("board"));
    const std::uint64_t after = symbols_.generation();
    EXPECT_NE(after, before);
    EXPECT_TRUE(package.linked);
    EXPECT_TRUE(link(package));
    EXPECT_EQ(symbols_.generation(), after) << "once";
}

TEST_F(InterfacesTest, NamesOfModulesAreFound) {
    PackageCode& package = know({.name = "shelves", .entries = {}, .exports = {"shelf"}, .interface = true});
    auto module = std::make_unique<GivenModule>();
    char shelf = 0;
    module->names["shelf"] = &shelf;
    NewCode code;
    code.module = std::move(module);
    {
        const LockOf lock(mutex_);
        new_codes_.take_module(package, std::move(code));
    }
    ASSERT_TRUE(link(package));
    EXPECT_EQ(symbols_.of_interfaces("shelf"), &shelf);
}

TEST_F(InterfacesTest, NamesThatAnotherOneHadAreTold) {
    ASSERT_TRUE(link(offer("old", {"shelf", "board"})));
    PackageCode& package = offer("new", {"shelf", "plank"});
    const auto report = link(package);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->replaced, std::vector<std::string>{"shelf (was of package old)"});
    EXPECT_EQ(symbols_.of_interfaces("shelf"), package.exported.at("shelf"));
    EXPECT_NE(symbols_.of_interfaces("board"), nullptr);
}

TEST_F(InterfacesTest, WhatTheNodeUsesIsReplacedByItsOwnPackagesAlone) {
    const std::vector<std::string> names{"of_the_node", "malloc", "shelf"};
    const auto report = link(offer("sent", names));
    ASSERT_TRUE(report);
    EXPECT_EQ(report->kept, (std::vector<std::string>{"of_the_node", "malloc"}));
    EXPECT_EQ(symbols_.of_interfaces("malloc"), nullptr);
    EXPECT_EQ(symbols_.of_interfaces("of_the_node"), nullptr);
    EXPECT_NE(symbols_.of_interfaces("shelf"), nullptr);
    PackageCode& own = offer("own", names, true);
    const auto of_own = link(own);
    ASSERT_TRUE(of_own);
    EXPECT_TRUE(of_own->kept.empty());
    EXPECT_EQ(symbols_.of_interfaces("malloc"), own.exported.at("malloc"));
}

TEST_F(InterfacesTest, OneThatLacksANameIsNotLinked) {
    PackageCode& package = offer("shelves", {"shelf", "board"});
    package.exported.erase("board");
    const auto refused = link(package);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::failed);
    EXPECT_EQ(refused.error().message(), "interface shelves defines no 'board' that it says it exports");
    EXPECT_EQ(symbols_.of_interfaces("shelf"), nullptr);
    EXPECT_FALSE(package.interface) << "it makes way as any other";
}

TEST_F(InterfacesTest, TheyAreNeverEvicted) {
    PackageCode& linked = offer("linked", {"shelf"});
    PackageCode& other = offer("other", {"board"});
    ASSERT_TRUE(link(linked));
    EXPECT_EQ(budgets_.held(Budget::pinned), linked.image->code_bytes());
    options_.code_bytes_max = 1;
    trim();
    EXPECT_TRUE(linked.loaded());
    EXPECT_FALSE(other.loaded());
}

TEST_F(InterfacesTest, TheyLeaveRoomToOthers) {
    options_.packages_max = 2;
    ASSERT_TRUE(link(offer("first", {"shelf"})));
    PackageCode& second = offer("second", {"board"});
    const auto too_many = link(second);
    ASSERT_FALSE(too_many);
    EXPECT_EQ(too_many.error().code(), ErrorCode::overloaded);
    EXPECT_FALSE(second.interface);
    options_.packages_max = 10;
    options_.code_bytes_max = 4 * kShareBytesMin;
    const auto too_large = link(offer("large", {"plank"}, false, 2 * kShareBytesMin + 1));
    ASSERT_FALSE(too_large);
    EXPECT_EQ(too_large.error().code(), ErrorCode::overloaded);
    EXPECT_EQ(symbols_.of_interfaces("plank"), nullptr);
    EXPECT_TRUE(link(second));
}

TEST_F(InterfacesTest, TheLastOneLinkedEndsFirst) {
    static std::vector<std::string> ended;
    ended.clear();
    std::string names[] = {"base", "middle", "top"};
    for (std::string& name : names) {
        PackageCode& package = offer(name, {"of_" + name});
        ASSERT_TRUE(
            package.destructors.add([](void* which) { ended.push_back(*static_cast<std::string*>(which)); }, &name));
        ASSERT_TRUE(link(package));
    }
    EXPECT_TRUE(interfaces_.end_all());
    EXPECT_EQ(ended, (std::vector<std::string>{"top", "middle", "base"}));
}

}  // namespace
}  // namespace rove::code
