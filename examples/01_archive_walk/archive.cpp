#include "archive.hpp"

#include <algorithm>
#include <cctype>
#include <istream>
#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>

namespace archive_walk {
namespace {

struct Stanza {
    std::string package, version, architecture;
    std::string depends, pre_depends, recommends;
};

// The field that a line begins, or nothing.
std::string* field_of(Stanza& stanza, std::string_view key) {
    if (key == "Package") return &stanza.package;
    if (key == "Version") return &stanza.version;
    if (key == "Architecture") return &stanza.architecture;
    if (key == "Depends") return &stanza.depends;
    if (key == "Pre-Depends") return &stanza.pre_depends;
    if (key == "Recommends") return &stanza.recommends;
    return nullptr;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
    return text;
}

// The next stanza; one without a Package at the end. A line that begins with a blank continues the field before it.
Stanza next_stanza(std::istream& in) {
    Stanza stanza;
    std::string* field = nullptr;
    for (std::string line; std::getline(in, line);) {
        if (trimmed(line).empty()) {
            if (!stanza.package.empty()) break;
        } else if (line.front() == ' ' || line.front() == '\t') {
            if (field != nullptr) *field += line;
        } else {
            const std::size_t colon = std::min(line.find(':'), line.size());
            field = field_of(stanza, std::string_view(line).substr(0, colon));
            if (field != nullptr) *field = trimmed(std::string_view(line).substr(std::min(colon + 1, line.size())));
        }
    }
    return stanza;
}

using Newest = std::map<std::string, Stanza, std::less<>>;

Newest newest_stanzas(std::istream& in, std::string_view architecture) {
    Newest newest;
    for (Stanza stanza = next_stanza(in); !stanza.package.empty(); stanza = next_stanza(in)) {
        if (stanza.architecture != architecture && stanza.architecture != "all") continue;
        const auto [place, is_new] = newest.try_emplace(stanza.package);
        if (is_new || compare_versions(place->second.version, stanza.version) < 0) place->second = std::move(stanza);
    }
    return newest;
}

// "name:qualifier (>= 1) [arch] <profile>" to its name; empty for a package of another architecture.
std::string_view name_of(std::string_view relation, std::string_view architecture) {
    const std::string_view word = relation.substr(0, std::min(relation.find_first_of(" \t([<"), relation.size()));
    const std::size_t colon = word.find(':');
    if (colon == std::string_view::npos) return word;
    const std::string_view qualifier = word.substr(colon + 1);
    return qualifier == "any" || qualifier == architecture ? word.substr(0, colon) : std::string_view();
}

void add_edges(const Graph& graph, std::string_view relations, std::uint32_t kind, std::string_view architecture,
               std::map<Vertex, std::uint32_t>& kinds_of) {
    while (!relations.empty()) {
        const std::size_t end = std::min(relations.find_first_of(",|"), relations.size());
        const std::string name(name_of(trimmed(relations.substr(0, end)), architecture));
        if (const auto found = graph.vertex_of.find(name); found != graph.vertex_of.end())
            kinds_of[found->second] |= kind;
        relations.remove_prefix(std::min(end + 1, relations.size()));
    }
}

// dpkg's order of characters: ~, then the end and digits, then letters, then the rest.
int rank_of(char c) {
    if (c == '~') return -1;
    if (c == '\0' || std::isdigit(static_cast<unsigned char>(c)) != 0) return 0;
    return std::isalpha(static_cast<unsigned char>(c)) != 0 ? c : c + 256;
}

// Takes a run of digits off the front and gives it without leading zeros.
std::string_view take_number(std::string_view& text) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    std::string_view digits = text.substr(0, end);
    text.remove_prefix(end);
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    return digits;
}

int compare_part(std::string_view a, std::string_view b) {
    const auto front = [](std::string_view text) { return text.empty() ? '\0' : text.front(); };
    const auto in_word = [&](std::string_view text) { return rank_of(front(text)) != 0; };
    while (!a.empty() || !b.empty()) {
        while (in_word(a) || in_word(b)) {
            if (const int order = rank_of(front(a)) - rank_of(front(b)); order != 0) return order;
            a.remove_prefix(1);
            b.remove_prefix(1);
        }
        const std::string_view number_a = take_number(a);
        const std::string_view number_b = take_number(b);
        if (number_a.size() != number_b.size()) return number_a.size() < number_b.size() ? -1 : 1;
        if (const int order = number_a.compare(number_b); order != 0) return order;
    }
    return 0;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0U);
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0]++;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
        }
    }
    return row.back();
}

}  // namespace

int compare_versions(std::string_view a, std::string_view b) {
    const auto take_epoch = [](std::string_view& version) {
        const std::size_t colon = version.find(':');
        const std::string_view epoch = colon == std::string_view::npos ? "0" : version.substr(0, colon);
        if (colon != std::string_view::npos) version.remove_prefix(colon + 1);
        return epoch;
    };
    const auto take_upstream = [](std::string_view& version) {
        const std::size_t dash = std::min(version.rfind('-'), version.size());
        const std::string_view upstream = version.substr(0, dash);
        version.remove_prefix(std::min(dash + 1, version.size()));
        return upstream;
    };
    if (const int order = compare_part(take_epoch(a), take_epoch(b)); order != 0) return order;
    if (const int order = compare_part(take_upstream(a), take_upstream(b)); order != 0) return order;
    return compare_part(a, b);
}

Graph read_archive(std::istream& stanzas, std::string_view architecture) {
    const Newest newest = newest_stanzas(stanzas, architecture);
    if (newest.empty()) throw std::runtime_error("no package in it");
    Graph graph;
    graph.names.reserve(newest.size());
    for (const auto& [name, stanza] : newest) {
        graph.vertex_of.emplace(name, static_cast<Vertex>(graph.names.size()));
        graph.names.push_back(name);
    }
    graph.edges.reserve(newest.size());
    for (const auto& [name, stanza] : newest) {
        std::map<Vertex, std::uint32_t> kinds_of;
        add_edges(graph, stanza.depends, kDepends, architecture, kinds_of);
        add_edges(graph, stanza.pre_depends, kPreDepends, architecture, kinds_of);
        add_edges(graph, stanza.recommends, kRecommends, architecture, kinds_of);
        auto& edges = graph.edges.emplace_back();
        for (const auto& [to, kinds] : kinds_of) edges.push_back(shard_edge_make(to, kinds));
    }
    return graph;
}

std::vector<std::string_view> cut_text(std::string_view text, std::size_t parts) {
    constexpr std::string_view kBetween = "\n\n";
    std::vector<std::string_view> cut;
    for (std::size_t begin = 0; cut.size() < parts;) {
        const std::size_t wanted = std::max(begin, text.size() * (cut.size() + 1) / parts);
        const std::size_t found = text.find(kBetween, wanted);
        const std::size_t end =
            found == std::string_view::npos || cut.size() + 1 == parts ? text.size() : found + kBetween.size();
        cut.push_back(text.substr(begin, end - begin));
        begin = end;
    }
    return cut;
}

std::size_t Graph::edge_count(std::uint32_t kinds) const {
    std::size_t count = 0;
    for (const auto& list : edges)
        count += static_cast<std::size_t>(std::count_if(
            list.begin(), list.end(), [&](shard_edge edge) { return (shard_edge_kinds(edge) & kinds) != 0; }));
    return count;
}

std::vector<std::string> Graph::near_names(std::string_view name, std::size_t count) const {
    std::vector<std::pair<std::size_t, const std::string*>> near;  // with how far away
    for (const std::string& other : names) {
        std::size_t distance = edit_distance(name, other);
        // A name that begins with what was asked for is what people mean when they stop typing.
        if (other.starts_with(name) && other != name) distance = std::min(distance, std::size_t{2}) - 1;
        if (distance <= 2) near.emplace_back(distance, &other);
    }
    std::sort(near.begin(), near.end(),
              [](const auto& a, const auto& b) { return std::tie(a.first, *a.second) < std::tie(b.first, *b.second); });
    std::vector<std::string> found;
    for (std::size_t i = 0; i < std::min(count, near.size()); ++i) found.push_back(*near[i].second);
    return found;
}

Closure plain_walk(const Graph& graph, Vertex start, std::uint32_t kinds) {
    Closure closure;
    std::vector<bool> seen(graph.names.size());
    seen[start] = true;
    for (std::vector<Vertex> level = {start}; !level.empty();) {
        closure.reached.insert(closure.reached.end(), level.begin(), level.end());
        std::vector<Vertex> next;
        for (const Vertex vertex : level) {
            for (const shard_edge edge : graph.edges[vertex]) {
                const Vertex to = shard_edge_to(edge);
                if ((shard_edge_kinds(edge) & kinds) == 0 || seen[to]) continue;
                seen[to] = true;
                next.push_back(to);
            }
        }
        if (!next.empty()) ++closure.depth;
        level = std::move(next);
    }
    std::sort(closure.reached.begin(), closure.reached.end());
    return closure;
}

}  // namespace archive_walk
