// The demo's search beside the plain way of doing it: the table of distances, and a list that is sorted.
#include "search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace archive_walk {
namespace {

Pattern pattern_of(const std::string& text) {
    Pattern pattern{};
    std::copy(text.begin(), text.end(), pattern.text.begin());
    pattern.size = static_cast<std::uint32_t>(text.size());
    return pattern;
}

// The fewest errors of the pattern anywhere in the line.
int plain_errors(const std::string& pattern, std::string line) {
    std::transform(line.begin(), line.end(), line.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
    std::vector<int> column(pattern.size() + 1);
    for (std::size_t i = 0; i < column.size(); ++i) column[i] = static_cast<int>(i);
    int fewest = column.back();
    for (const char c : line) {
        int diagonal = column[0];
        for (std::size_t i = 1; i < column.size(); ++i) {
            const int replaced = diagonal + (pattern[i - 1] == c ? 0 : 1);
            diagonal = column[i];
            column[i] = std::min({replaced, column[i] + 1, column[i - 1] + 1});
        }
        fewest = std::min(fewest, column.back());
    }
    return fewest;
}

std::string random_text(std::mt19937& random, std::size_t bytes_max, std::string_view letters) {
    std::string text(random() % (bytes_max + 1), ' ');
    for (char& c : text) c = letters[random() % letters.size()];
    return text;
}

int errors_in(const std::string& pattern, const std::string& description) {
    const TopTen top = search_here({0, "Description: " + description + "\n"}, pattern_of(pattern));
    return top[0].bytes == 0 ? static_cast<int>(pattern.size()) : top[0].errors;
}

TEST(Search, CountsErrorsAsTheTableOfDistancesDoes) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (int round = 0; round < 3000; ++round) {
        const std::string pattern = "a" + random_text(random, Pattern::kBytesMax - 1, round % 2 == 0 ? "ab" : "abcd ");
        const std::string line = random_text(random, 200, "abAcd ");
        ASSERT_EQ(errors_in(pattern, line), plain_errors(pattern, line)) << pattern << " in " << line;
    }
    EXPECT_EQ(errors_in("vidoe editor", "a Video Editor"), 2);
    EXPECT_EQ(errors_in("x", ""), 1);
}

TEST(Search, GivesTheBestTenOfAllParts) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (int round = 0; round < 100; ++round) {
        const std::string pattern = "a" + random_text(random, 6, "abc");
        std::vector<std::string> parts(1 + random() % 5);
        std::vector<Hit> wanted;
        for (std::uint32_t node = 0; node < parts.size(); ++node) {
            for (std::size_t stanza = random() % 20; stanza > 0; --stanza) {
                const std::string name = "Package: " + random_text(random, 8, "abc");
                const std::string description = random_text(random, 8, "abc");
                std::string text = name;
                text.append("\nInstalled-Size: 5000\nDescription: ")
                    .append(description)
                    .append("\nTag: ")
                    .append(pattern);
                const int errors = std::min(plain_errors(pattern, name.substr(9)), plain_errors(pattern, description));
                const auto description_bytes = static_cast<std::int32_t>(description.size());
                if (errors < static_cast<int>(pattern.size()))
                    wanted.push_back({1000 - 100 * errors - description_bytes, errors, node,
                                      static_cast<std::uint32_t>(parts[node].size()),
                                      static_cast<std::uint32_t>(text.size() + 1)});
                parts[node] += text + "\n\n";
            }
        }
        std::sort(wanted.begin(), wanted.end(), [](const Hit& a, const Hit& b) {
            return std::tuple(-a.score, a.node, a.offset) < std::tuple(-b.score, b.node, b.offset);
        });
        TopTen top = search_here({0, parts[0]}, pattern_of(pattern));
        for (std::uint32_t node = 1; node < parts.size(); ++node)
            top = merged(top, search_here({node, parts[node]}, pattern_of(pattern)));
        for (std::size_t i = 0; i < top.size(); ++i) {
            if (i < wanted.size())
                EXPECT_EQ(top[i], wanted[i]) << i;
            else
                EXPECT_EQ(top[i].bytes, 0U) << i;
        }
    }
}

TEST(Search, TakesTextAsItComes) {
    const Pattern pattern = pattern_of("abc");
    EXPECT_EQ(search_here({0, ""}, pattern)[0].bytes, 0U);
    EXPECT_EQ(search_here({0, "\n\n\n"}, pattern)[0].bytes, 0U);
    EXPECT_EQ(search_here({0, "Package: "}, pattern)[0].bytes, 0U);
    EXPECT_EQ(search_here({0, "Package: abc"}, pattern)[0].errors, 0);
    EXPECT_EQ(search_here({0, "Installed-Size: 99999999999999999999\nPackage: abc\n"}, pattern)[0].errors, 0);
    EXPECT_EQ(search_here({7, "\nPackage: abc\n"}, pattern)[0].offset, 1U);
}

}  // namespace
}  // namespace archive_walk
