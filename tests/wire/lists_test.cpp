// Answers that are lists: what is written is what is read, and any text is a list.
#include "wire/lists.hpp"

#include <gtest/gtest.h>

namespace rove::wire {
namespace {

using Names = std::vector<std::string>;

TEST(Lists, FunctionsAreReadAsTheyWereWritten) {
    std::string list;
    append(list, {"0f", "search", "int(std::string)"});
    append(list, {"1f", "walk", ""});
    EXPECT_EQ(list, "0f\tsearch\tint(std::string)\n1f\twalk\t\n");
    const std::vector<ListedFunction> read = listed_functions(list);
    ASSERT_EQ(read.size(), 2U);
    EXPECT_EQ(read[0].id, "0f");
    EXPECT_EQ(read[0].name, "search");
    EXPECT_EQ(read[0].signature, "int(std::string)");
    EXPECT_EQ(read[1].name, "walk");
    EXPECT_EQ(read[1].signature, "");
}

TEST(Lists, WhatIsMissingInALineIsEmpty) {
    EXPECT_TRUE(listed_functions("").empty());
    const std::vector<ListedFunction> read = listed_functions("0f\n\nid\tname\n2f\tlast\tint()");
    ASSERT_EQ(read.size(), 4U);
    EXPECT_EQ(read[0].id, "0f");
    EXPECT_EQ(read[0].name, "");
    EXPECT_EQ(read[1].id, "");
    EXPECT_EQ(read[2].name, "name") << "a line does not take from the next";
    EXPECT_EQ(read[3].signature, "int()");
}

TEST(Lists, OneOfManyLinesEndsSomewhere) {
    EXPECT_EQ(listed_functions(std::string(3 * kListedFunctionsMax, '\n')).size(), kListedFunctionsMax);
}

TEST(Lists, NamesOfALoadAreReadAsTheyWereWritten) {
    for (const LoadedNames& names : {LoadedNames{}, LoadedNames{{"a (was of package X)", "b"}, {}},
                                     LoadedNames{{}, {"malloc"}}, LoadedNames{{"a"}, {"malloc", "free"}}}) {
        const LoadedNames read = loaded_names(text_of(names));
        EXPECT_EQ(read.replaced, names.replaced);
        EXPECT_EQ(read.kept, names.kept);
    }
    EXPECT_EQ(loaded_names("first\nsec").replaced, Names{"first"}) << "of a long list the end was cut off";
}

}  // namespace
}  // namespace rove::wire
