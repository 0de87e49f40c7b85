// What a newcomer sees first: four nodes hold Debian's package archive between them, and functions that they have never
// seen are sent to it. A search, which pays; the same search after an edit; and a walk, which travels from node to node.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>
#include <thread>

#include "archive.hpp"
#include "client.hpp"
#include "edited_search.hpp"
#include "options.hpp"
#include "processes.hpp"
#include "report.hpp"
#include "rove/rove.hpp"
#include "search.hpp"

namespace archive_walk {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::uint32_t kKinds = kDepends | kPreDepends;  // that walk.c follows
constexpr const char* kSharedMemory = "shared memory";
constexpr const char* kTcp = "TCP";

std::string first_line_of(const std::string& text) {
    return text.substr(0, text.find_first_of("\r\n"));
}

struct Archive {
    std::string text;
    Graph graph;
};

Archive read_whole_archive(const Options& options) {
    const std::string architecture = options.architecture.empty()
                                         ? first_line_of(output_of({"dpkg", "--print-architecture"}))
                                         : options.architecture;
    std::string from = options.archive;
    std::string remedy;
    std::string text;
    if (options.archive == "-") {
        from = "standard input";
        text.assign(std::istreambuf_iterator<char>(std::cin), {});
    } else if (!options.archive.empty()) {
        std::ifstream file(options.archive);
        if (!file) throw std::runtime_error(options.archive + ": cannot be read");
        text.assign(std::istreambuf_iterator<char>(file), {});
    } else {
        from = "apt-cache dumpavail";
        remedy = "; run `apt-get update` as root";
        text = output_of({"apt-cache", "dumpavail"});
    }
    try {
        std::istringstream stanzas(std::move(text));
        Graph graph = read_archive(stanzas, architecture);
        return {std::move(stanzas).str(), std::move(graph)};
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(fmt::format("{}: {} for {}{}", from, error.what(), architecture, remedy));
    }
}

Vertex vertex_named(const Graph& graph, const std::string& name) {
    if (const auto found = graph.vertex_of.find(name); found != graph.vertex_of.end()) return found->second;
    std::string message = fmt::format("there is no package named '{}'", name);
    if (const auto near = graph.near_names(name, 5); !near.empty())
        message += fmt::format("; near it: {}", fmt::join(near, ", "));
    throw std::runtime_error(message);
}

Json machine() {
    std::string processor = "unknown";
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
            processor = line.substr(line.find(": ") + 2);
            break;
        }
    utsname system{};
    uname(&system);
    return {{"processor", processor},
            {"processors", std::thread::hardware_concurrency()},
            {"kernel", std::string(system.release)},
            {"architecture", std::string(system.machine)}};
}

// The demo, one scene after the other. What each finds is kept for the table and for JSON.
class Demo {
public:
    Demo(const Options& options, const Report& report) : options_(options), report_(report) {}
    Json run();

private:
    void read();
    void fill(const Cluster& cluster);
    void show_search();
    void show_edited_search();
    void show_walk(const Cluster& near, const Cluster& far);
    void conclude();

    [[nodiscard]] Json searched(const fs::path& program, const char* fabric, unsigned runs) const;
    void compare(const std::string& what, const char* over, const Json& measured);
    [[nodiscard]] Comparison walked(const Cluster& cluster, const char* over, const rove::Entry& walk,
                                    const rove::Entry& list);
    void say_top(const Json& top_ten) const;

    const Options& options_;
    const Report& report_;
    const ScratchDirectory scratch_;
    std::vector<std::string> addresses_;
    Archive archive_;
    Vertex start_ = 0;
    std::vector<Comparison> table_;
    Json result_;
};

void Demo::read() {
    report_.step("archive", [this] {
        archive_ = read_whole_archive(options_);
        start_ = vertex_named(archive_.graph, options_.package);
        return fmt::format("{} packages, {} dependencies, {} bytes of text", grouped(archive_.graph.names.size()),
                           grouped(archive_.graph.edge_count(kKinds)), grouped(archive_.text.size()));
    });
    result_["archive"] = {{"packages", archive_.graph.names.size()},
                          {"dependencies", archive_.graph.edge_count(kKinds)},
                          {"text_bytes", archive_.text.size()}};
}

// Loads the interface everywhere, and gives each node its part of the text and of the graph.
void Demo::fill(const Cluster& cluster) {
    report_.step("filling", [&] {
        const rove::Package fill = rove::Package::open(options_.packages / "fill.rove");
        (void)cluster.load(rove::Package::open(options_.packages / "shard.rove"), fill.entry("roll_call"));
        const Cost text = cluster.keep_text(fill.entry("keep_text"), cut_text(archive_.text, options_.nodes));
        const Cost graph = cluster.fill(fill.entry("fill"), archive_.graph);
        return fmt::format("{} bytes brought by {} calls of functions that were sent",
                           grouped(text.data_bytes + graph.data_bytes), text.calls + graph.calls);
    });
}

Json Demo::searched(const fs::path& program, const char* fabric, unsigned runs) const {
    std::vector<std::string> command = {
        program, "--json", "--fabric", fabric, "--runs", std::to_string(runs), "--pattern", options_.pattern};
    command.insert(command.end(), addresses_.begin(), addresses_.end());
    return Json::parse(output_of(command));
}

void Demo::compare(const std::string& what, const char* over, const Json& measured) {
    const auto figure = [](const Json& way) {
        return Figure::of(way.at("times_ms").get<std::vector<double>>(), way.at("bytes").get<std::uint64_t>());
    };
    table_.push_back({what, over, figure(measured.at("sent")), figure(measured.at("fetched"))});
}

void Demo::say_top(const Json& top_ten) const {
    for (const Json& hit : top_ten)
        report_.say("  {:>6}  {:<26} {}", hit.at("score").get<int>(), hit.at("package").get<std::string>(),
                    hit.at("description").get<std::string>());
}

void Demo::show_search() {
    report_.title(
        fmt::format("A search for \"{}\", errors allowed: a C++ lambda, sent to where the text is.", options_.pattern));
    if (!fs::exists(options_.search)) {
        result_["search"] = {{"left_out", options_.search.string() + " is not there: only clang builds it"}};
        report_.say("  left out: {}", result_["search"]["left_out"].get<std::string>());
        return;
    }
    Json near;
    Json far;
    report_.step("search", [&] {
        near = searched(options_.search, "shm", options_.runs);
        return fmt::format("{} times each way, over {}", options_.runs, kSharedMemory);
    });
    report_.step("search", [&] {
        far = searched(options_.search, "tcp", options_.runs);
        return fmt::format("{} times each way, over {}", options_.runs, kTcp);
    });
    if (near.at("top_ten") != far.at("top_ten")) throw std::runtime_error("the search finds something else over TCP");
    say_top(near.at("top_ten"));
    const std::string what = fmt::format("search, {:.1f} MB", near.at("text_bytes").get<double>() / 1e6);
    compare(what, kSharedMemory, near.at("search"));
    compare(what, kTcp, far.at("search"));
    const std::string reads = fmt::format("read {} stanzas", near.at("reads").at("count").get<int>());
    compare(reads, kSharedMemory, near.at("reads"));
    compare(reads, kTcp, far.at("reads"));
    result_["search"] = {{"pattern", options_.pattern},
                         {"score_line", kScoreLine},
                         {"first_call", near.at("first_call")},
                         {"top_ten", near.at("top_ten")}};
}

void Demo::show_edited_search() {
    if (result_.at("search").contains("left_out")) return;
    report_.title("The score's line is edited, and the search runs again. Nothing was restarted.");
    report_.removed_line(kScoreLine);
    report_.added_line(kScoreLineEdited);
    Json& result = result_["edited_search"];
    fs::path program;
    try {
        report_.step("build", [&] {
            const auto begun = std::chrono::steady_clock::now();
            program = build_edited_search(options_, scratch_.path());
            const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begun;
            result["build_ms"] = time.count();
            return std::string("by clang, with the build's flags, and `rove bundle`");
        });
    } catch (const std::runtime_error& error) {
        result = {{"left_out", error.what()}};
        report_.say("{}  left out: {}", report_.clear_line(), first_line_of(error.what()));
        return;
    }
    Json edited;
    report_.step("search", [&] {
        edited = searched(program, "shm", 1);
        return fmt::format("its first call brought {} bytes of code, and took {}",
                           grouped(edited.at("first_call").at("code_bytes").get<std::uint64_t>()),
                           time_text(edited.at("first_call").at("time_ms").get<double>()));
    });
    say_top(edited.at("top_ten"));
    result["score_line"] = kScoreLineEdited;
    result["first_call"] = edited.at("first_call");
    result["top_ten"] = edited.at("top_ten");
}

Comparison Demo::walked(const Cluster& cluster, const char* over, const rove::Entry& walk, const rove::Entry& list) {
    const Graph& graph = archive_.graph;
    const Closure wanted = plain_walk(graph, start_, kKinds);
    const auto check = [&](const Closure& got, const char* who) {
        if (got == wanted) return;
        throw std::runtime_error(fmt::format("{} found {} packages at depth {}, the plain walk {} at depth {}", who,
                                             got.reached.size(), got.depth, wanted.reached.size(), wanted.depth));
    };
    check(cluster.travel(walk, start_).closure, "the walk");  // the first calls bring the code
    check(cluster.fetch(list, start_, kKinds, graph.names.size()).closure, "fetching lists");
    std::vector<double> travelled_ms;
    std::vector<double> fetched_ms;
    Walked travelled;
    Walked fetched;
    for (unsigned run = 0; run < options_.runs; ++run) {
        travelled = cluster.travel(walk, start_);
        fetched = cluster.fetch(list, start_, kKinds, graph.names.size());
        check(travelled.closure, "the walk");
        check(fetched.closure, "fetching lists");
        travelled_ms.push_back(travelled.cost.microseconds / 1000);
        fetched_ms.push_back(fetched.cost.microseconds / 1000);
    }
    result_["walk"] = {{"start", options_.package},
                       {"packages", wanted.reached.size()},
                       {"depth", wanted.depth},
                       {"hops", travelled.cost.hops},
                       {"bytes_between_nodes", travelled.cost.node_bytes},
                       {"calls_when_fetching", fetched.cost.calls}};
    return {fmt::format("walk, {} packages", grouped(wanted.reached.size())), over,
            Figure::of(travelled_ms, travelled.cost.data_bytes + travelled.cost.code_bytes),
            Figure::of(fetched_ms, fetched.cost.data_bytes + fetched.cost.code_bytes)};
}

void Demo::show_walk(const Cluster& near, const Cluster& far) {
    report_.title(
        fmt::format("What does {} pull in? A function walks from node to node to find out.", options_.package));
    report_.step("walk", [&] {
        const rove::Entry walk = rove::Package::open(options_.packages / "walk.rove").entry("walk");
        const rove::Entry list = rove::Package::open(options_.packages / "list.rove").entry("list");
        table_.push_back(walked(near, kSharedMemory, walk, list));
        table_.push_back(walked(far, kTcp, walk, list));
        const Json& walk_found = result_["walk"];
        return fmt::format("{} packages, at depth {}, in {} hops",
                           grouped(walk_found.at("packages").get<std::uint64_t>()), walk_found.at("depth").get<int>(),
                           walk_found.at("hops").get<int>());
    });
}

void Demo::conclude() {
    report_.title("What is gained by sending the function, instead of fetching what it needs");
    report_.table(table_);
    std::vector<std::string> not_gained;
    for (const Comparison& row : table_)
        if (row.times_faster() < 1) not_gained.push_back(fmt::format("{} over {}", row.what, row.over));
    report_.say("");
    if (!not_gained.empty()) report_.say("  No time is gained here: {}.", fmt::join(not_gained, "; "));
    report_.say("  A few small reads over shared memory are a copy, which asks nobody: fetch those.");
    report_.say("");
    report_.say("  Times are medians of {} runs. The first call of a function also brings its code.", options_.runs);
    if (const Json& search = result_.at("search"); search.contains("first_call"))
        report_.say("  The search's first call took {} and brought {} bytes of it, to all nodes together.",
                    time_text(search.at("first_call").at("time_ms").get<double>()),
                    grouped(search.at("first_call").at("code_bytes").get<std::uint64_t>()));
    report_.say("  Bytes are those over the client's links; the walk moved {} more between the nodes.",
                grouped(result_.at("walk").at("bytes_between_nodes").get<std::uint64_t>()));
    report_.say("  The client and all nodes share one machine, and TCP its loopback, which is faster than a network.");
    result_["comparisons"] = Json::array();
    for (const Comparison& row : table_) result_["comparisons"].push_back(row.json());
}

Json Demo::run() {
    const auto begun = std::chrono::steady_clock::now();
    report_.say("{} processes hold Debian's package archive between them. Functions are sent to it.\n", options_.nodes);
    setenv("ROVE_COOKIE", (scratch_.path() / "cookie").c_str(), 1);  // this run's own: works without a home, too
    setenv("TMPDIR", scratch_.path().c_str(), 1);                    // what compilers leave is removed with it
    read();
    NodeProcesses processes(options_.rove, scratch_.path());
    try {
        report_.step("nodes", [&] {
            while (processes.addresses().size() < options_.nodes) processes.start(std::chrono::seconds(20));
            return fmt::format("{} times `rove node`, which know nothing of this program", options_.nodes);
        });
        addresses_ = processes.addresses();
        rove::Node near({.fabric = rove::FabricChoice::shm});
        rove::Node far({.fabric = rove::FabricChoice::tcp});
        const Cluster near_cluster(near, addresses_);
        const Cluster far_cluster(far, addresses_);
        fill(near_cluster);
        show_search();
        show_edited_search();
        show_walk(near_cluster, far_cluster);
        conclude();
    } catch (...) {
        std::fputs(processes.complaints().c_str(), stderr);
        throw;
    }
    result_["machine"] = machine();
    result_["nodes"] = options_.nodes;
    result_["runs"] = options_.runs;
    result_["units"] = {{"time_ms", "milliseconds, the median of the runs; _min and _max beside it"},
                        {"bytes", "over the client's links in one run"},
                        {"times_faster, times_fewer_bytes", "fetched divided by sent"}};
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begun;
    result_["wall_time_s"] = time.count();
    return result_;
}

}  // namespace
}  // namespace archive_walk

int main(int argc, char** argv) {
    archive_walk::end_on_signals();
    archive_walk::Options options;
    std::error_code ignored;
    options.rove = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "rove";
    options.search = options.rove.parent_path() / "archive_search";
    options.packages = ARCHIVE_WALK_PACKAGES;
    options.compile_commands = ARCHIVE_SEARCH_COMPILE_COMMANDS;
    CLI::App app{
        "Shows what it gains to send functions to where data is: a search of Debian's package archive, and a walk\n"
        "over its dependencies, on four nodes of this machine. Takes some seconds, and leaves nothing behind.\n"};
    app.name("./dev demo");
    app.get_formatter()->column_width(34);
    app.add_option("PACKAGE", options.package, "where the walk starts")->capture_default_str();
    app.add_option("--pattern", options.pattern, "what the search looks for, 1 to 64 bytes; errors are allowed")
        ->capture_default_str();
    app.add_option("--runs", options.runs, "how often each thing is measured")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    app.add_flag("--json", options.json, "one JSON object on stdout: all figures; the rest is written to stderr");
    app.add_option("--nodes", options.nodes, "how many")->capture_default_str()->check(CLI::Range(1, 32));
    app.add_option("--archive", options.archive, "a file as `apt-cache dumpavail` prints it, or - (default: run it)");
    app.add_option("--architecture", options.architecture, "whose packages (default: this machine's)");
    app.add_option("--rove", options.rove, "the command `rove`")->group("Where the build put things");
    app.add_option("--search", options.search, "the program archive_search")->group("Where the build put things");
    app.add_option("--packages", options.packages, "the folder of shard.rove, fill.rove, walk.rove and list.rove")
        ->group("Where the build put things");
    app.add_option("--compile-commands", options.compile_commands, "how the build compiles search.cpp")
        ->group("Where the build put things");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    const archive_walk::Report report(options.json);
    try {
        if (options.pattern.empty() || options.pattern.size() > archive_walk::Pattern::kBytesMax)
            throw std::runtime_error("a pattern has 1 to 64 bytes");
        const auto result = archive_walk::Demo(options, report).run();
        if (options.json)
            std::printf("%s\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
        return 0;
    } catch (const std::exception& error) {
        std::fputs(fmt::format("{}demo: {}\n", report.clear_line(), error.what()).c_str(), stderr);
        return 1;
    }
}
