// rove bench: Rove and its yardsticks, side by side in one run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>

#include "bench/against_command.hpp"
#include "bench/idle_peers.hpp"
#include "bench/shapes.hpp"
#include "commands.hpp"
#include "engine/peers.hpp"
#include "node/options.hpp"
#include "rove/error.hpp"
#include "toolchain/process.hpp"

namespace rove::tools {
namespace {

using bench::Progress;
using bench::Report;
using bench::Settings;

// Threads that call: far more than have something to do on two cores.
constexpr std::size_t kCallersMax = 256;

// In place of a file's name.
constexpr const char* kStdout = "-";

struct Arguments {
    Settings settings;
    std::string shape;
    std::string against, json, markdown;
};

const std::map<std::string, std::function<void(const Settings&, Report&, Progress&)>> kShapes{
    {"latency", bench::measure_latency}, {"rate", bench::measure_rate},   {"bandwidth", bench::measure_bandwidth},
    {"arrival", bench::measure_arrival}, {"crowd", bench::measure_crowd}, {"wake", bench::measure_wake},
    {"engines", bench::measure_engines}, {"idle", bench::measure_idle},   {"api", bench::measure_api},
    {"threads", bench::measure_threads}};

// The shapes that have a figure to compare with that of a user's command.
const std::vector<std::string> kShapesWithCommand{"latency", "rate", "arrival", "api"};

// Everything that docs/performance.md reports.
void measure_tables(Settings settings, Report& report, Progress& progress) {
    const auto set = [&settings](std::string fabric, std::string function, std::vector<std::string> modes,
                                 std::vector<std::size_t> sizes) -> const Settings& {
        settings.fabric = std::move(fabric);
        settings.function = std::move(function);
        settings.modes = std::move(modes);
        settings.sizes = std::move(sizes);
        return settings;
    };
    bench::measure_latency(set("shm", "increment", {"deliver", "resident", "cached"}, {32}), report, progress);
    bench::measure_latency(set("shm", "indirect_put", {"cached", "inline"}, {32}), report, progress);
    settings.stress = true;
    bench::measure_latency(set("shm", "indirect_put", {"cached", "inline"}, {64, 1024, 16384}), report, progress);
    settings.stress = false;
    bench::measure_rate(set("shm", "increment", {"cached"}, {8, 32}), report, progress);
    bench::measure_bandwidth(set("shm", "sum", {"cached"}, {4096, 65536}), report, progress);
    bench::measure_arrival(set("shm", "sum", {"cached"}, {8}), report, progress);
    bench::measure_latency(set("tcp", "increment", {"cached"}, {8, 32}), report, progress);
    bench::measure_rate(set("tcp", "increment", {"cached"}, {8}), report, progress);
    bench::measure_wake(set("shm", "increment", {"cached"}, {8}), report, progress);
    bench::measure_crowd(settings, report, progress);
    bench::measure_engines(settings, report, progress);
    bench::measure_threads(set("shm", "increment", {"cached"}, {8}), report, progress);
    bench::measure_threads(set("tcp", "increment", {"cached"}, {8}), report, progress);
    bench::measure_api(set("shm", "", {}, {}), report, progress);
}

void write(const std::string& path, const std::string& text) {
    if (path == kStdout) return void(std::fputs(text.c_str(), stdout));
    std::ofstream file(path);
    file << text;
    if (!file.flush()) throw Error(ErrorCode::invalid, "cannot write " + path);
}

// A command that a shape does not run would be left out in silence.
void check_usage(const Arguments& arguments) {
    const bool runs_it = std::ranges::find(kShapesWithCommand, arguments.shape) != kShapesWithCommand.end();
    if (arguments.settings.against_command.empty() || runs_it) return;
    throw CLI::ValidationError("--against-command", fmt::format("of {} only, not of {}",
                                                                fmt::join(kShapesWithCommand, ", "), arguments.shape));
}

// Checked before minutes of measuring, not after them.
void check_what_is_needed(const Arguments& arguments) {
    const Settings& settings = arguments.settings;
    const auto need = [](const std::filesystem::path& path, const std::string& remedy) {
        if (!std::filesystem::exists(path)) throw Error(ErrorCode::invalid, path.string() + " is not there; " + remedy);
    };
    const std::string made_by =
        "`./dev bench`, or `cmake --build`, of the sources makes it (`./dev build` only what is installed)";
    const bool all = arguments.shape == "tables";
    need(settings.packages / "increment.rove", made_by + "; or say with --packages where it is");
    if (all || arguments.shape == "arrival")
        need(settings.sources / "increment" / "increment.c",
             "say with --sources where the folder packages/ of the sources is");
    if (all || arguments.shape == "api")
        for (const char* const program : {"rove_bench_api", "rove_bench_api_bitcode"})
            need(settings.rove.parent_path() / program, made_by);
    if (arguments.shape == "idle") need(settings.rove.parent_path() / bench::kPeersProgram, made_by);
    for (const std::string& path : {arguments.json, arguments.markdown})
        if (!path.empty() && path != kStdout && !std::ofstream(path, std::ios::app))
            throw Error(ErrorCode::invalid, "cannot write " + path);
}

void run_bench(Arguments& arguments) {
    check_usage(arguments);
    Settings& settings = arguments.settings;
    settings.rove = std::filesystem::read_symlink("/proc/self/exe");
    const std::filesystem::path prefix = settings.rove.parent_path().parent_path();
    if (settings.packages.empty()) settings.packages = prefix / "packages";
    if (settings.sources.empty()) settings.sources = ROVE_PACKAGE_SOURCES;
    check_what_is_needed(arguments);
    settings.against_ucx = arguments.against == "ucx";
    Report report;
    report.command = "rove bench " + arguments.shape;
    report.against_command = settings.against_command;
    {
        const toolchain::Interruptible ends_in_order;  // the folders of both sides are removed
        Progress progress;
        if (arguments.shape == "tables")
            measure_tables(settings, report, progress);
        else
            kShapes.at(arguments.shape)(settings, report, progress);
    }
    (void)std::fputs(report.table().c_str(), arguments.json == kStdout ? stderr : stdout);
    if (!arguments.json.empty()) write(arguments.json, report.json().dump(2) + "\n");
    if (!arguments.markdown.empty() && arguments.markdown != kStdout) write(arguments.markdown, report.table());
}

}  // namespace

void add_bench(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    Settings& settings = arguments->settings;
    CLI::App* command =
        app.add_subcommand("bench", "Measure Rove beside its yardsticks: UCX, and what the machine can do");
    command
        ->add_option(
            "SHAPE", arguments->shape,
            "latency: half a round trip; rate: posts, run; bandwidth: the same with large payloads; arrival: first "
            "calls; wake: calls to a sleeping node; crowd: eight nodes on two cores; threads: those of one program, "
            "which call one peer; engines: a node with several; idle: what peers cost that do "
            "nothing; api: typed calls and buffers; tables: all of docs/performance.md but idle")
        ->required()
        ->check(CLI::IsMember({"latency", "rate", "bandwidth", "arrival", "wake", "crowd", "idle", "api", "threads",
                               "engines", "tables"}));
    command
        ->add_option(
            "--mode", settings.modes,
            "deliver: nothing is run; resident: the function is there; cached: it was sent once; inline: it is sent "
            "in every frame. Several: separated by commas")
        ->delimiter(',')
        ->check(CLI::IsMember({"deliver", "resident", "cached", "inline"}))
        ->capture_default_str();
    command->add_option("--function", settings.function, "increment, sum or indirect_put")
        ->check(CLI::IsMember({"increment", "sum", "indirect_put"}))
        ->capture_default_str();
    command->add_option("--size", settings.sizes, "payload bytes; several: separated by commas")
        ->delimiter(',')
        ->check(CLI::Range(8, 261120));
    command->add_option("--fabric", settings.fabric, "shm or tcp")
        ->check(CLI::IsMember({"shm", "tcp"}))
        ->capture_default_str();
    command->add_option("--against", arguments->against, "ucx: run ucx_perftest in turns with Rove, and give ratios")
        ->check(CLI::IsMember({"ucx"}));
    command
        ->add_option(
            "--against-command", settings.against_command,
            fmt::format(
                "latency, rate, arrival, api: run this command (by sh) in turns with Rove, on both cores, and give the "
                "ratios. It prints a line: latency, {0}=NUMBER, half a round trip; rate, {1}=NUMBER; arrival, "
                "{2}=NUMBER, a first call over a later one; api, {0}=NUMBER, all of an empty synchronous call. It may "
                "take {3} s each time (docs/bench.md)",
                bench::kMedianKey, bench::kRateKey, bench::kFirstCallKey, bench::kCommandTimeMax.count()))
        ->check([](const std::string& text) { return text.empty() ? "it is empty" : ""; });
    command->add_option("--runs", settings.runs, "windows of each; figures are medians over them")
        ->check(CLI::Range(1U, 1000U))
        ->capture_default_str();
    command
        ->add_option(
            "--peers", settings.peers,
            "idle: how many do nothing (0,100,300; --quick: 0,8). Several: separated by commas. Each takes some "
            "90 KiB of memory at both ends together, after it has been quiet for 5 s, a thread, and 10 descriptors at "
            "its own end: their soft limit is raised to the hard one")
        ->delimiter(',')
        ->check(CLI::Range(std::size_t{0}, kPeersMax - 1));  // one more calls
    command
        ->add_option("--engines", settings.engines,
                     "engines: how many the node has, beside one with 1. Several: separated by commas")
        ->delimiter(',')
        ->check(CLI::Range(2U, kEnginesMax))
        ->capture_default_str();
    command
        ->add_option("--quiet-ms", settings.quiet_ms, "idle: how long peers have done nothing before they are measured")
        ->check(CLI::Range(0U, 600'000U))
        ->capture_default_str();
    command
        ->add_option(
            "--threads", settings.threads,
            "threads: how many call (1,2,4,8). Several: separated by commas; one is always measured beside them")
        ->delimiter(',')
        ->check(CLI::Range(std::size_t{1}, kCallersMax));
    command->add_flag(
        "--own-thread", settings.own_thread,
        "threads: the program's node has threads of its own, as by default; otherwise those that wait serve it");
    command->add_flag("--stress", settings.stress, "latency: while `stress-ng --vm 2` works on memory on both cores");
    command->add_flag("--quick", settings.quick,
                      "short runs, whose figures mean little, to check that everything works");
    command->add_option("--json", arguments->json,
                        "also write the figures to this file (docs/bench.md); -: to stdout, and the table to stderr");
    command->add_option("--markdown", arguments->markdown, "also write the table to this file");
    command->add_option("--packages", settings.packages, "where increment.rove, sum.rove and the others are");
    command->add_option("--sources", settings.sources, "the folder packages/ of the sources (arrival builds from it)");
    command->footer(
        "Both sides are started and pinned to two cores. A ratio is the median over the runs of Rove's median (or "
        "rate) by the\n"
        "yardstick's in the same run. Smaller is better for latencies, larger for rates.");
    command->callback([arguments] { run_bench(*arguments); });
}

}  // namespace rove::tools
