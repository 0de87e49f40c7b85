// The demo's parts without a node: what is read from the archive, and the travelling functions on nodes that this test
// plays: each has its own copy of the functions' library, and frames between them are a queue.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>

#include "archive.hpp"
#include "rove/rove.h"

struct rove_here {
    rove_node_id node = 0;
    std::uint32_t nodes = 0;
    bool ended = false;
    bool forwarded = false;
    rove_node_id to = 0;
    std::string bytes;  // of the reply, or of the payload that was sent on
    std::optional<std::string> error;
    unsigned hops = 0;
};

extern "C" {
int rove_reply(rove_here* here, const void* data, size_t size) noexcept {
    if (here->ended || size > 255 * 1024) return ROVE_INVALID;
    here->ended = true;
    here->bytes.assign(static_cast<const char*>(data), size);
    return ROVE_OK;
}
int rove_fail(rove_here* here, const char* message) noexcept {
    if (here->ended) return ROVE_INVALID;
    here->ended = true;
    here->error = message;
    return ROVE_OK;
}
int rove_forward(rove_here* here, rove_node_id node, const void* payload, size_t size) noexcept {
    if (here->ended || node >= here->nodes || here->hops == 255 || size > 255 * 1024) return ROVE_INVALID;
    here->ended = here->forwarded = true;
    here->to = node;
    here->bytes.assign(static_cast<const char*>(payload), size);
    return ROVE_OK;
}
rove_node_id rove_node(rove_here* here) noexcept {
    return here->node;
}
uint32_t rove_node_count(rove_here* here) noexcept {
    return here->nodes;
}
}

namespace archive_walk {
namespace {

using Function = void (*)(rove_here*, const void*, size_t);

class PlayedNodes {
public:
    explicit PlayedNodes(std::uint32_t count) {
        std::string name = (std::filesystem::temp_directory_path() / "archive-walk-test-XXXXXX").string();
        directory_ = mkdtemp(name.data());
        for (std::uint32_t i = 0; i < count; ++i) {
            const auto copy = directory_ / ("node-" + std::to_string(i) + ".so");
            std::filesystem::copy_file(ARCHIVE_WALK_FUNCTIONS, copy);
            nodes_.push_back(dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL));
            if (nodes_.back() == nullptr) throw std::runtime_error(dlerror());
        }
    }
    ~PlayedNodes() {
        for (void* node : nodes_) dlclose(node);
        std::filesystem::remove_all(directory_);
    }
    PlayedNodes(const PlayedNodes&) = delete;
    PlayedNodes& operator=(const PlayedNodes&) = delete;

    [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(nodes_.size()); }

    rove_here call(const char* function, std::uint32_t node, std::string payload) {
        for (unsigned hops = 0;; ++hops) {
            rove_here here;
            here.node = node;
            here.nodes = count();
            here.hops = hops;
            // The payload is 16-byte aligned, as a node gives it.
            std::vector<std::max_align_t> aligned(payload.size() / sizeof(std::max_align_t) + 1);
            std::memcpy(aligned.data(), payload.data(), payload.size());
            reinterpret_cast<Function>(dlsym(nodes_[node], function))(&here, aligned.data(), payload.size());
            if (!here.forwarded) return here;
            node = here.to;
            payload = std::move(here.bytes);
        }
    }

    std::optional<std::string> fill(const Graph& graph) {
        for (std::uint32_t node = 0; node < count(); ++node) {
            fill_request head{static_cast<std::uint32_t>(graph.names.size()), count(), 1, 0};
            std::vector<std::uint32_t> words;
            for (Vertex vertex = node; vertex < graph.names.size(); vertex += count(), ++head.records) {
                words.push_back(vertex);
                words.push_back(static_cast<std::uint32_t>(graph.edges[vertex].size()));
                words.insert(words.end(), graph.edges[vertex].begin(), graph.edges[vertex].end());
            }
            std::string payload(reinterpret_cast<const char*>(&head), sizeof head);
            payload.append(reinterpret_cast<const char*>(words.data()), words.size() * 4);
            if (auto error = call("fill", node, payload).error) return error;
        }
        return std::nullopt;
    }

    // A call of keep_text with this head.
    std::optional<std::string> keep_text(std::uint64_t room, const std::string& text) {
        const keep_text_request head{room};
        return call("keep_text", 0, std::string(reinterpret_cast<const char*>(&head), sizeof head) + text).error;
    }
    [[nodiscard]] std::string text() const {
        std::uint64_t bytes = 0;
        const char* text = reinterpret_cast<const char* (*)(std::uint64_t*)>(dlsym(nodes_[0], "shard_text"))(&bytes);
        return {text, bytes};
    }

    rove_here walk(Vertex start, std::uint64_t number) {
        walk_state state{};
        state.walk = number;
        state.now_count = 1;
        std::string payload(reinterpret_cast<const char*>(&state), sizeof state);
        payload.append(reinterpret_cast<const char*>(&start), sizeof start);
        return call("walk", start % count(), payload);
    }

private:
    std::filesystem::path directory_;
    std::vector<void*> nodes_;
};

Closure closure_of(const rove_here& here) {
    walk_answer answer{};
    std::memcpy(&answer, here.bytes.data(), sizeof answer);
    Closure closure;
    closure.depth = answer.depth;
    closure.reached.resize(answer.reached);
    EXPECT_EQ(here.bytes.size(), sizeof answer + 4UL * answer.reached);
    std::memcpy(closure.reached.data(), here.bytes.data() + sizeof answer, 4UL * answer.reached);
    std::sort(closure.reached.begin(), closure.reached.end());
    return closure;
}

Graph random_graph(std::uint32_t vertices, std::uint32_t edges, std::mt19937& random) {
    Graph graph;
    graph.names.resize(vertices);
    graph.edges.resize(vertices);
    for (std::uint32_t i = 0; i < edges; ++i)
        graph.edges[random() % vertices].push_back(shard_edge_make(random() % vertices, 1U << random() % 3));
    return graph;
}

Graph chain(std::uint32_t vertices) {
    Graph graph;
    graph.names.resize(vertices);
    graph.edges.resize(vertices);
    for (Vertex i = 0; i + 1 < vertices; ++i) graph.edges[i].push_back(shard_edge_make(i + 1, kDepends));
    return graph;
}

Graph small_graph() {
    std::ifstream file(std::string(ARCHIVE_WALK_DATA) + "/small_archive.txt");
    return read_archive(file, "amd64");
}

std::vector<std::string> targets(const Graph& graph, const std::string& name, std::uint32_t kinds) {
    std::vector<std::string> found;
    for (const shard_edge edge : graph.edges[graph.vertex_of.at(name)])
        if ((shard_edge_kinds(edge) & kinds) != 0) found.push_back(graph.names[shard_edge_to(edge)]);
    return found;
}
using Names = std::vector<std::string>;
constexpr std::uint32_t kHard = kDepends | kPreDepends;

TEST(Archive, KeepsTheNewestStanzaOfThisArchitecture) {
    const Graph graph = small_graph();
    EXPECT_EQ(graph.vertex_of.count("wrong-architecture"), 0U);
    EXPECT_EQ(targets(graph, "libtoolkit", kHard), (Names{"libc", "libsmall"}));
    EXPECT_EQ(targets(graph, "spell", kHard), (Names{"libc", "words"}));
    EXPECT_TRUE(std::is_sorted(graph.names.begin(), graph.names.end()));
}

TEST(Archive, CountsEveryAlternativeAndNoVirtualPackage) {
    const Graph graph = small_graph();
    EXPECT_EQ(targets(graph, "desktop", kHard), (Names{"fonts", "settings", "settings-lite", "shell"}));
    EXPECT_EQ(targets(graph, "desktop", kRecommends), (Names{"games", "office"}));
    EXPECT_EQ(targets(graph, "shell", kPreDepends), (Names{"dpkg-like"}));
    EXPECT_EQ(targets(graph, "session-manager", kHard), (Names{"tar-like"}));
}

TEST(Archive, UnderstandsArchitectureQualifiers) {
    const Graph graph = small_graph();
    EXPECT_EQ(targets(graph, "libc", kHard), (Names{"libgcc"}));  // loader:arm64 is another machine's
    EXPECT_EQ(targets(graph, "shell", kDepends), (Names{"libtoolkit", "python3", "session-manager"}));
}

TEST(Archive, OrdersVersionsAsDebianDoes) {
    const Names ascending = {"0.9~rc1",  "0.9~rc1-1", "0.9",   "0.9-0", "0.9-1~bpo1", "0.9-1",
                             "0.9-1+b1", "0.9a",      "0.9+x", "0.10",  "1:0.1"};
    // "0.9" and "0.9-0" are the same to dpkg: an absent revision counts as 0.
    for (std::size_t i = 0; i + 1 < ascending.size(); ++i) {
        EXPECT_LE(compare_versions(ascending[i], ascending[i + 1]), 0) << ascending[i] << " and " << ascending[i + 1];
        EXPECT_GE(compare_versions(ascending[i + 1], ascending[i]), 0) << ascending[i] << " and " << ascending[i + 1];
    }
    EXPECT_EQ(compare_versions("0.9", "0.9-0"), 0);
    EXPECT_EQ(compare_versions("1.002", "1.2"), 0);
    EXPECT_LT(compare_versions("1.0~~", "1.0~"), 0);
    EXPECT_LT(compare_versions("1.0-1", "1.0-1.1"), 0);
}

TEST(Archive, OffersNamesNearAnUnknownOne) {
    const Graph graph = small_graph();
    const Names near = graph.near_names("libsond", 5);
    ASSERT_FALSE(near.empty());
    EXPECT_EQ(near.front(), "libsound");
    EXPECT_TRUE(graph.near_names("nothing-like-this-at-all", 5).empty());
}

TEST(Archive, IsCutBetweenStanzas) {
    const std::string text =
        "Package: a\nVersion: 1\n\nPackage: b\n\nPackage: c\nDescription: long enough\n\nPackage: d\n";
    for (std::size_t parts = 1; parts <= 9; ++parts) {
        const auto cut = cut_text(text, parts);
        ASSERT_EQ(cut.size(), parts);
        std::string whole;
        for (const std::string_view part : cut) {
            EXPECT_TRUE(part.empty() || part.starts_with("Package: ")) << part;
            whole += part;
        }
        EXPECT_EQ(whole, text);
    }
    EXPECT_EQ(cut_text("", 3).size(), 3U);
    EXPECT_EQ(cut_text(text, 2)[0].size(), text.find("Package: d"));
}

TEST(Archive, RefusesAnEmptyOne) {
    std::istringstream empty("\n\n");
    EXPECT_THROW((void)read_archive(empty, "amd64"), std::runtime_error);
}

TEST(Walk, AgreesWithThePlainWalkOnTheSmallArchive) {
    const Graph graph = small_graph();
    PlayedNodes nodes(4);
    ASSERT_EQ(nodes.fill(graph), std::nullopt);
    for (Vertex start = 0; start < graph.names.size(); ++start) {
        const rove_here end = nodes.walk(start, 1000 + start);
        ASSERT_EQ(end.error, std::nullopt) << *end.error;
        EXPECT_EQ(closure_of(end), plain_walk(graph, start, kHard)) << graph.names[start];
    }
}

TEST(Walk, AgreesWithThePlainWalkOnRandomGraphs) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (std::uint32_t count = 1; count <= 5; ++count) {
        PlayedNodes nodes(count);
        for (int round = 0; round < 10; ++round) {
            const std::uint32_t vertices = 1 + random() % 400;
            const Graph graph = random_graph(vertices, random() % (4 * vertices), random);
            ASSERT_EQ(nodes.fill(graph), std::nullopt);
            for (int i = 0; i < 5; ++i) {
                const Vertex start = random() % vertices;
                const rove_here end = nodes.walk(start, random());
                ASSERT_EQ(end.error, std::nullopt) << *end.error;
                EXPECT_EQ(closure_of(end), plain_walk(graph, start, kHard));
                EXPECT_LE(end.hops, (closure_of(end).depth + 2) * count);
            }
        }
    }
}

TEST(Walk, TooDeepIsAnErrorAndNotAWrongAnswer) {
    PlayedNodes nodes(2);
    ASSERT_EQ(nodes.fill(chain(200)), std::nullopt);
    EXPECT_EQ(nodes.walk(0, 1).error, std::nullopt);
    ASSERT_EQ(nodes.fill(chain(300)), std::nullopt);
    const rove_here end = nodes.walk(0, 2);
    ASSERT_TRUE(end.error.has_value());
    EXPECT_NE(end.error->find("hops"), std::string::npos);
}

TEST(Walk, AWalkThatANodeHasForgottenIsAnError) {
    PlayedNodes nodes(1);
    ASSERT_EQ(nodes.fill(chain(3)), std::nullopt);
    walk_state state{};
    state.walk = 77;
    state.begun = 1;
    const rove_here end = nodes.call("walk", 0, std::string(reinterpret_cast<const char*>(&state), sizeof state));
    ASSERT_TRUE(end.error.has_value());
    EXPECT_NE(end.error->find("marks"), std::string::npos);
}

TEST(Walk, MalformedPayloadsAreErrors) {
    PlayedNodes nodes(2);
    ASSERT_EQ(nodes.fill(chain(3)), std::nullopt);
    EXPECT_TRUE(nodes.call("walk", 0, "short").error.has_value());
    walk_state state{};
    state.now_count = 5;
    EXPECT_TRUE(
        nodes.call("walk", 0, std::string(reinterpret_cast<const char*>(&state), sizeof state)).error.has_value());
    EXPECT_TRUE(nodes.walk(99, 1).error.has_value());
    EXPECT_TRUE(nodes.call("fill", 0, "short").error.has_value());
    const std::uint32_t wrong_owner[] = {3, 2, 0, 1, 1, 0};
    EXPECT_TRUE(nodes.call("fill", 0, std::string(reinterpret_cast<const char*>(wrong_owner), sizeof wrong_owner))
                    .error.has_value());
    const std::uint32_t edge_to_nowhere[] = {3, 2, 0, 1, 0, 1, 9};
    EXPECT_TRUE(
        nodes.call("fill", 0, std::string(reinterpret_cast<const char*>(edge_to_nowhere), sizeof edge_to_nowhere))
            .error.has_value());
}

TEST(Fill, KeepsTextInPartsAsLongAsThereIsRoom) {
    PlayedNodes nodes(1);
    EXPECT_EQ(nodes.keep_text(8, "abc"), std::nullopt);
    EXPECT_EQ(nodes.keep_text(0, "defgh"), std::nullopt);
    EXPECT_EQ(nodes.text(), "abcdefgh");
    EXPECT_TRUE(nodes.keep_text(0, "i").has_value());
    EXPECT_EQ(nodes.text(), "abcdefgh");
    EXPECT_EQ(nodes.keep_text(2, "ij"), std::nullopt);
    EXPECT_EQ(nodes.text(), "ij");
    EXPECT_TRUE(nodes.call("keep_text", 0, "short").error.has_value());
}

TEST(List, GivesTheListsThatFit) {
    PlayedNodes nodes(1);
    Graph graph = chain(3);
    ASSERT_EQ(nodes.fill(graph), std::nullopt);
    const Vertex asked[] = {1, 2, 0};
    const rove_here end = nodes.call("list", 0, std::string(reinterpret_cast<const char*>(asked), sizeof asked));
    const std::uint32_t wanted[] = {1, shard_edge_make(2, kDepends), 0, 1, shard_edge_make(1, kDepends)};
    EXPECT_EQ(end.bytes, std::string(reinterpret_cast<const char*>(wanted), sizeof wanted));

    graph.edges[0].assign(50'000, shard_edge_make(1, kDepends));
    graph.edges[1].assign(10'000, shard_edge_make(1, kDepends));
    ASSERT_EQ(nodes.fill(graph), std::nullopt);
    const rove_here two = nodes.call("list", 0, std::string(reinterpret_cast<const char*>(asked), sizeof asked));
    EXPECT_EQ(two.bytes.size(), 4UL * (1 + 10'000 + 1));  // the third waits for the next call
}

}  // namespace
}  // namespace archive_walk
