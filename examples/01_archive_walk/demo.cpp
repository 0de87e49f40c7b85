// What does a Debian package pull in? Four nodes hold the archive's package graph between them; a function travels over
// them and comes back with the answer. Then one of its lines is edited, and the running nodes answer for both versions.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include "archive.hpp"
#include "client.hpp"
#include "processes.hpp"
#include "rove/rove.hpp"

namespace archive_walk {
namespace {

namespace fs = std::filesystem;

struct Options {
    std::string package = "gnome";
    std::string archive;       // a file, "-", or empty: what apt knows
    std::string architecture;  // empty: this machine's
    unsigned nodes = 4;
    fs::path rove;      // the command
    fs::path packages;  // where shard.rove, fill.rove, walk.rove and list.rove are
    fs::path sources;   // where walk.c is
};

// The line that version 2 edits, and what it becomes.
constexpr std::string_view kFollowed = "static const uint32_t followed = kDepends | kPreDepends;";
constexpr std::string_view kFollowedToo = "static const uint32_t followed = kDepends | kPreDepends | kRecommends;";
constexpr std::uint32_t kKinds1 = kDepends | kPreDepends;
constexpr std::uint32_t kKinds2 = kKinds1 | kRecommends;

template <typename... Args>
// NOLINTNEXTLINE(performance-unnecessary-value-param): as fmt takes it
void say(fmt::format_string<Args...> text, Args&&... args) {
    fmt::print("{}\n", fmt::format(text, std::forward<Args>(args)...));
    std::fflush(stdout);
}

// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
    return text;
}

// "  graph      63,666 packages …          1.61 s": one step, and how long it took. Announced first on a terminal.
template <typename Step>
void step(std::string_view name, Step&& what) {
    const bool terminal = isatty(STDOUT_FILENO) != 0;
    if (terminal) {
        fmt::print("  {:<10} ...", name);
        std::fflush(stdout);
    }
    const auto begun = std::chrono::steady_clock::now();
    const std::string done = what();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begun;
    say("{}  {:<10} {:<62} {:7.3f} s", terminal ? "\r" : "", name, done, time.count());
}

std::string first_line_of(const std::string& text) {
    return text.substr(0, text.find_first_of("\r\n"));
}

Graph read_graph(const Options& options) {
    const std::string architecture = options.architecture.empty()
                                         ? first_line_of(output_of({"dpkg", "--print-architecture"}))
                                         : options.architecture;
    const auto read = [&](std::istream& in, const std::string& from, const std::string& remedy) {
        try {
            return read_archive(in, architecture);
        } catch (const std::runtime_error& error) {
            throw std::runtime_error(fmt::format("{}: {} for {}{}", from, error.what(), architecture, remedy));
        }
    };
    if (options.archive == "-") return read(std::cin, "standard input", "");
    if (!options.archive.empty()) {
        std::ifstream file(options.archive);
        if (!file) throw std::runtime_error(options.archive + ": cannot be read");
        return read(file, options.archive, "");
    }
    std::istringstream stanzas(output_of({"apt-cache", "dumpavail"}));
    return read(stanzas, "apt-cache dumpavail", "; run `apt-get update` as root");
}

Vertex vertex_named(const Graph& graph, const std::string& name) {
    if (const auto found = graph.vertex_of.find(name); found != graph.vertex_of.end()) return found->second;
    std::string message = fmt::format("there is no package named '{}'", name);
    if (const auto near = graph.near_names(name, 5); !near.empty())
        message += fmt::format("; near it: {}", fmt::join(near, ", "));
    throw std::runtime_error(message);
}

// Writes version 2 of the walk's source and builds it, under the same name as version 1.
rove::Package build_version_2(const Options& options, const fs::path& scratch) {
    std::stringstream source;
    source << std::ifstream(options.sources / "walk.c").rdbuf();
    std::string text = source.str();
    const std::size_t line = text.find(kFollowed);
    if (line == std::string::npos) throw std::runtime_error("walk.c has no line: " + std::string(kFollowed));
    text.replace(line, kFollowed.size(), kFollowedToo);
    std::ofstream(scratch / "walk.c") << text;
    fs::copy_file(options.sources / "shard.h", scratch / "shard.h");
    const fs::path output = scratch / "walk.rove";
    (void)output_of({options.rove, "build", scratch / "walk.c", "-o", output});
    return rove::Package::open(output);
}

void check(const Closure& got, const Closure& wanted, std::string_view who) {
    if (got == wanted) return;
    throw std::runtime_error(fmt::format("{} found {} packages at depth {}, the plain walk {} at depth {}", who,
                                         got.reached.size(), got.depth, wanted.reached.size(), wanted.depth));
}

std::string time_text(double microseconds) {
    return fmt::format("{:.2f} ms", microseconds / 1000);
}

void print_costs(const Cost& first, const Cost& second, const Cost& fetched) {
    const auto row = [](std::string_view name, const auto& a, const auto& b, const auto& c) {
        say("    {:<26}{:>14}{:>14}{:>18}", name, a, b, c);
    };
    row("", "first call", "second call", "fetching lists");
    row("time", time_text(first.microseconds), time_text(second.microseconds), time_text(fetched.microseconds));
    row("calls by the client", first.calls, second.calls, fetched.calls);
    row("hops from node to node", first.hops, second.hops, fetched.hops);
    row("code bytes sent", grouped(first.code_bytes), grouped(second.code_bytes), grouped(fetched.code_bytes));
    row("data bytes at the client", grouped(first.data_bytes), grouped(second.data_bytes), grouped(fetched.data_bytes));
    row("data bytes between nodes", grouped(first.node_bytes), grouped(second.node_bytes), grouped(fetched.node_bytes));
}

// One version of the function: its first call, its second, and what the same walk costs without it.
Closure show_version(const Cluster& cluster, const rove::Entry& walk, const rove::Entry& list, const Graph& graph,
                     Vertex start, std::uint32_t kinds) {
    const Closure wanted = plain_walk(graph, start, kinds);
    const Walked first = cluster.travel(walk, start);
    const Walked second = cluster.travel(walk, start);
    (void)cluster.fetch(list, start, kinds, graph.names.size());  // so that its code is cached, too
    const Walked fetched = cluster.fetch(list, start, kinds, graph.names.size());
    check(first.closure, wanted, "the first call");
    check(second.closure, wanted, "the second call");
    check(fetched.closure, wanted, "fetching lists");
    say("  {} reaches {} packages, itself included, at depth {}: a plain walk in one process says the same.\n",
        graph.names[start], grouped(wanted.reached.size()), wanted.depth);
    print_costs(first.cost, second.cost, fetched.cost);
    return wanted;
}

void show_again(const Cluster& cluster, const rove::Entry& walk, const Closure& wanted, int version, Vertex start) {
    const Walked walked = cluster.travel(walk, start);
    check(walked.closure, wanted, fmt::format("version {}", version));
    say("  version {} ({})  {:>6} packages, depth {:>2}, {:>3} hops, code bytes sent {}, {}", version,
        walk.id().substr(0, 8), grouped(walked.closure.reached.size()), walked.closure.depth, walked.cost.hops,
        walked.cost.code_bytes, time_text(walked.cost.microseconds));
}

Graph read_graph_as_step(const Options& options) {
    Graph graph;
    step("graph", [&] {
        graph = read_graph(options);
        const std::size_t all = graph.edge_count(kKinds2);
        return fmt::format("{} packages, {} edges, {} of them Recommends only", grouped(graph.names.size()),
                           grouped(all), grouped(all - graph.edge_count(kKinds1)));
    });
    return graph;
}

// Loads the interface everywhere and fills the shards.
void prepare(const Options& options, const Cluster& cluster, const Graph& graph) {
    const rove::Package fill = rove::Package::open(options.packages / "fill.rove");
    step("interface", [&] {
        const Cost cost = cluster.load(rove::Package::open(options.packages / "shard.rove"), fill.entry("roll_call"));
        return fmt::format("one name, each node's own data; {} code bytes sent", grouped(cost.code_bytes));
    });
    step("shards", [&] {
        const Cost cost = cluster.fill(fill.entry("fill"), graph);
        return fmt::format("filled by {} calls of a shipped function; {} data bytes sent", cost.calls,
                           grouped(cost.data_bytes));
    });
}

void show_both_versions(const Options& options, const Cluster& cluster, const Graph& graph, Vertex start,
                        const fs::path& scratch) {
    const rove::Entry list = rove::Package::open(options.packages / "list.rove").entry("list");
    const rove::Entry walk_1 = rove::Package::open(options.packages / "walk.rove").entry("walk");
    say("\nVersion 1 of the walk follows Depends and Pre-Depends.");
    const Closure closure_1 = show_version(cluster, walk_1, list, graph, start, kKinds1);

    say("\nVersion 2 is the same file with one line edited, shipped under the same name to the running nodes.");
    say("  - {}\n  + {}", kFollowed, kFollowedToo);
    std::optional<rove::Entry> walk_2;
    step("build", [&] {
        walk_2 = build_version_2(options, scratch).entry("walk");
        return std::string("`rove build walk.c -o walk.rove`");
    });
    const Closure closure_2 = show_version(cluster, *walk_2, list, graph, start, kKinds2);

    say("\nBoth versions answer, and nothing was restarted.");
    show_again(cluster, walk_1, closure_1, 1, start);
    show_again(cluster, *walk_2, closure_2, 2, start);
}

void run(const Options& options) {
    say("What does {} pull in? A function walks Debian's package graph over {} processes to find out.\n",
        options.package, options.nodes);
    const Graph graph = read_graph_as_step(options);
    const Vertex start = vertex_named(graph, options.package);

    const ScratchDirectory scratch;
    setenv("ROVE_COOKIE", (scratch.path() / "cookie").c_str(), 1);  // this run's own: works without a home, too
    NodeProcesses processes(options.rove, scratch.path());
    try {
        step("nodes", [&] {
            while (processes.addresses().size() < options.nodes) processes.start(std::chrono::seconds(20));
            return fmt::format("{} times `rove node`, which know nothing of all this", options.nodes);
        });
        rove::Node client;
        const Cluster cluster(client, processes.addresses());
        prepare(options, cluster, graph);
        show_both_versions(options, cluster, graph, start, scratch.path());
    } catch (...) {
        fmt::print(stderr, "{}", processes.complaints());
        throw;
    }
}

}  // namespace
}  // namespace archive_walk

int main(int argc, char** argv) {
    archive_walk::end_on_signals();
    archive_walk::Options options;
    std::error_code ignored;
    options.rove = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "rove";
    options.packages = ARCHIVE_WALK_PACKAGES;
    options.sources = ARCHIVE_WALK_SOURCES;
    CLI::App app{"Finds what a Debian package pulls in, with a function that walks over several nodes."};
    app.add_option("package", options.package, "where the walk starts")->capture_default_str();
    app.add_option("--archive", options.archive, "a file as `apt-cache dumpavail` prints it, or - (default: run it)");
    app.add_option("--architecture", options.architecture, "whose packages (default: this machine's)");
    app.add_option("--nodes", options.nodes, "how many")->capture_default_str()->check(CLI::Range(1, 32));
    app.add_option("--rove", options.rove, "the command `rove`")->capture_default_str();
    app.add_option("--packages", options.packages, "where the built packages are")->capture_default_str();
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    try {
        archive_walk::run(options);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "archive_walk: {}\n", error.what());
        return 1;
    }
}
