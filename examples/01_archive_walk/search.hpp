// A fuzzy search of the archive's text: the same search sent to the nodes that hold it, and run here on what was fetched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rove/rove.hpp"

namespace archive_walk {

// What is looked for, ready to travel.
struct Pattern {
    static constexpr std::size_t kBytesMax = 64;  // one bit of a word each
    std::array<char, kBytesMax> text;
    std::uint32_t size;
};

// A stanza that was found: its place in its node's text.
struct Hit {
    std::int32_t score;
    std::int32_t errors;  // letters to change, to add or to leave out
    std::uint32_t node;
    std::uint32_t offset;
    std::uint32_t bytes;  // 0: there is no hit

    friend bool operator==(const Hit&, const Hit&) = default;
};
// The best first; of those with the same score, the first in the archive first.
using TopTen = std::array<Hit, 10>;

// What one node holds: whole stanzas.
struct Part {
    std::uint32_t node;
    std::string_view text;
};

// Sends the search to each node, which runs it on what it holds, all of them at once.
[[nodiscard]] TopTen search_there(const rove::PeerGroup& peers, const Pattern& pattern);
// The same search on one part, in this process.
[[nodiscard]] TopTen search_here(const Part& part, const Pattern& pattern);
// Of two parts, `a` before `b` in the archive.
[[nodiscard]] TopTen merged(const TopTen& a, const TopTen& b);

}  // namespace archive_walk
