// The graph: Debian's package archive as `apt-cache dumpavail` prints it, and the plain walk that answers are checked
// by.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shard.h"

namespace archive_walk {

using Vertex = std::uint32_t;

struct Graph {
    std::vector<std::string> names;              // of the vertices, in alphabetical order
    std::vector<std::vector<shard_edge>> edges;  // of each vertex, one per target, in the order of their targets
    std::unordered_map<std::string, Vertex> vertex_of;

    [[nodiscard]] std::size_t edge_count(std::uint32_t kinds) const;
    // At most `count` names that look like this one, the likeliest first.
    [[nodiscard]] std::vector<std::string> near_names(std::string_view name, std::size_t count) const;
};

// Reads stanzas. One for each name, the newest, of this architecture (or `all`); edges lead to names that have a stanza
// of their own, every alternative counted. Throws std::runtime_error when there is no stanza.
[[nodiscard]] Graph read_archive(std::istream& stanzas, std::string_view architecture);

// Cuts the archive's text into as many parts, of whole stanzas and about the same size; some are empty where there are
// fewer stanzas.
[[nodiscard]] std::vector<std::string_view> cut_text(std::string_view text, std::size_t parts);

// Debian's order of versions: epoch, upstream version, revision; digits by value, `~` before everything, even the end.
// Negative, zero or positive.
[[nodiscard]] int compare_versions(std::string_view a, std::string_view b);

struct Closure {
    std::vector<Vertex> reached;  // ascending, the start among them
    std::uint32_t depth = 0;      // the longest of the shortest paths

    friend bool operator==(const Closure&, const Closure&) = default;
};
// The same walk in one process: what the travelling function's answer is checked against.
[[nodiscard]] Closure plain_walk(const Graph& graph, Vertex start, std::uint32_t kinds);

}  // namespace archive_walk
