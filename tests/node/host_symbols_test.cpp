// What code that has travelled may call is what the two headers for it declare: a function without a row in the table would compile, and be
// missing on another node.
#include "node/host_symbols.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "process.hpp"

namespace rove::test {
namespace {

// The functions that a header declares, by the beginning of their parameters.
std::set<std::string> declared_in(const std::string& header, const std::string& parameters) {
    std::ifstream file(source_folder() / "include/rove" / header);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const std::regex declaration("\\b(rove_\\w+)\\(" + parameters);
    std::set<std::string> names;
    for (std::sregex_iterator found(text.begin(), text.end(), declaration); found != std::sregex_iterator(); ++found)
        names.insert((*found)[1]);
    return names;
}

TEST(HostSymbols, AreTheFunctionsOfBothHeaders) {
    std::set<std::string> declared = declared_in("edge.h", "");
    EXPECT_GT(declared.size(), 20U);
    const std::set<std::string> of_functions = declared_in("rove.h", "rove_here\\*");
    EXPECT_GT(of_functions.size(), 5U);
    declared.insert(of_functions.begin(), of_functions.end());
    std::set<std::string> there;
    for (const code::HostSymbol& symbol : host_symbols())
        if (symbol.name.starts_with("rove_")) there.emplace(symbol.name);
    EXPECT_EQ(there, declared);
}

}  // namespace
}  // namespace rove::test
