// life: mixed life by seed. Real nodes and clients, work with numbers on it, and trouble; then the proof that each number ran at
// most once and each call had one end. docs/testing.md says how to read what it prints.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "fabrics.hpp"
#include "town.hpp"
#include "verdict.hpp"

namespace life {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kFaultsShown = 12;  // of each sort
constexpr int kFaulty = 1, kInterrupted = 130;

volatile sig_atomic_t interrupted = 0;

struct Options {
    std::string fabric = "shm";
    unsigned engines = 1;
    double seconds = 60, hard = 1;
    std::uint64_t seed = 0;
    unsigned rate = 100;
    bool keep = false, json = false;
};

// A folder of this run's own, where nothing of the user's is read or made.
std::string make_scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "rove-life-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return std::perror(name.c_str()), std::exit(2), "";
    setenv("ROVE_COOKIE", (name + "/cookie").c_str(), 1);
    setenv("ROVE_CACHE", (name + "/cache").c_str(), 1);
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
    // What a node has freed is kept from being used again, up to 256 MiB: that would look as if it were not given back.
    const char* set = std::getenv("ASAN_OPTIONS");
    setenv("ASAN_OPTIONS", (std::string(set != nullptr ? set : "") + ":quarantine_size_mb=8").c_str(), 1);
#endif
#endif
    return name;
}

void live(Town& town, const Plan& plan, const Options& options) {
    const auto begin = Clock::now();
    const auto length = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
    const bool terminal = isatty(STDERR_FILENO) != 0;
    auto event = plan.events.begin();
    auto shown = begin;
    while (Clock::now() - begin < length && interrupted == 0) {
        for (; event != plan.events.end() && begin + event->at <= Clock::now(); ++event) town.apply(*event);
        town.tick();
        if (terminal && Clock::now() > shown) {
            shown = Clock::now() + 500ms;
            fmt::print(stderr, "\r{:4.0f} s of {:.0f}: {} clients, {} pieces of work, {} complaints; {}\x1b[K",
                       std::chrono::duration<double>(Clock::now() - begin).count(), options.seconds, town.clients(),
                       town.pieces(), town.complaints().size(), town.last_trouble());
        }
        std::this_thread::sleep_for(5ms);
    }
    if (terminal) fmt::print(stderr, "\r\x1b[K");
}

void run(Town& town, const Plan& plan, const Options& options) {
    town.start_nodes();
    if (!town.complaints().empty()) return;
    town.warm_up(1'500ms);
    town.start_clients();
    live(town, plan, options);
    if (interrupted != 0) return;
    town.calm();
    town.finish_clients();
    town.roll_call();
    town.compare_usage();
    town.stop_nodes();
}

void print_table(const Verdict& verdict, const Town& town) {
    fmt::print("{:<11}", "");
    for (const State state : {State::answered, State::failed, State::not_sent, State::posted, State::given_up,
                              State::sent, State::unanswered, State::wrong})
        fmt::print("{:>11}", kStateNames[static_cast<unsigned>(state)]);
    fmt::print("\n");
    for (std::size_t kind = 0; kind < Verdict::kKinds; ++kind) {
        fmt::print("{:<11}", kKindNames[kind]);
        for (const State state : {State::answered, State::failed, State::not_sent, State::posted, State::given_up,
                                  State::sent, State::unanswered, State::wrong})
            fmt::print("{:>11}", verdict.states[kind][static_cast<unsigned>(state)]);
        fmt::print("\n");
    }
    fmt::print("{} pieces of work, {} runs; {} of {} posts ran; slowest end after {} ms\n", verdict.pieces,
               verdict.runs, verdict.posts_run, verdict.posts, verdict.slowest_ms);
    for (std::size_t code = 1; code < verdict.codes.size(); ++code)
        if (verdict.codes[code] != 0) fmt::print("{} {}  ", verdict.codes[code], kCodeNames[code]);
    fmt::print("\n");
    for (unsigned i = 0; i < static_cast<unsigned>(Trouble::count); ++i)
        fmt::print("{}{} {}", i == 0 ? "" : ", ", town.count_of(static_cast<Trouble>(i)), kTroubleNames[i]);
    fmt::print("\n");
    for (const auto& lines : {town.answers(), town.usages()})
        for (const std::string& line : lines) fmt::print("{}\n", line);
}

// By their sentence: how often, and some of them in full.
std::map<std::string, std::vector<std::string>> sorted(const Verdict& verdict) {
    std::map<std::string, std::vector<std::string>> faults;
    for (const Fault& fault : verdict.faults) faults[fault.what].push_back(fault.details);
    return faults;
}

void print_faults(const Verdict& verdict, const Town& town) {
    for (const std::string& complaint : town.complaints()) fmt::print("FAULT: {}\n", complaint);
    for (const auto& [what, details] : sorted(verdict)) {
        fmt::print("FAULT: {}: {} times\n", what, details.size());
        for (std::size_t i = 0; i < std::min(details.size(), kFaultsShown); ++i) fmt::print("    {}\n", details[i]);
    }
}

nlohmann::json as_json(const Verdict& verdict, const Town& town, const Options& options) {
    nlohmann::json json{
        {"fabric", options.fabric},          {"engines", options.engines}, {"seed", options.seed},
        {"seconds", options.seconds},        {"pieces", verdict.pieces},   {"runs", verdict.runs},
        {"slowest_ms", verdict.slowest_ms},  {"posts", verdict.posts},     {"posts_run", verdict.posts_run},
        {"complaints", town.complaints()},   {"answered", town.answers()}, {"usage", town.usages()},
        {"faults", nlohmann::json::object()}};
    for (const auto& [what, details] : sorted(verdict)) json["faults"][what] = details;
    for (std::size_t kind = 0; kind < Verdict::kKinds; ++kind)
        for (std::size_t state = 0; state < Verdict::kStates; ++state)
            if (verdict.states[kind][state] != 0)
                json["kinds"][kKindNames[kind]][kStateNames[state]] = verdict.states[kind][state];
    for (std::size_t code = 1; code < verdict.codes.size(); ++code)
        if (verdict.codes[code] != 0) json["errors"][kCodeNames[code]] = verdict.codes[code];
    for (unsigned i = 0; i < static_cast<unsigned>(Trouble::count); ++i)
        json["trouble"][kTroubleNames[i]] = town.count_of(static_cast<Trouble>(i));
    return json;
}

int life(const Options& options) {
    if (!options.json) fmt::print("seed {}, fabric {}, {} s\n", options.seed, options.fabric, options.seconds);
    std::fflush(stdout);
    const std::string scratch = make_scratch();
    const std::filesystem::path programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const Plan plan =
        plan_of(options.seed, std::chrono::milliseconds(static_cast<long>(options.seconds * 1'000)), options.hard);
    bool good = false;
    {
        Town town({options.fabric, options.engines, scratch, programs.string(),
                   (programs.parent_path() / "life").string(), options.rate},
                  plan);
        run(town, plan, options);
        if (interrupted == 0) {
            const Verdict verdict = judge(scratch + "/runs", town.records());
            good = verdict.faults.empty() && town.complaints().empty();
            if (options.json) {
                fmt::print("{}\n", as_json(verdict, town, options).dump(2));
            } else {
                print_faults(verdict, town);  // first, because a report of a failure may be cut short
                print_table(verdict, town);
            }
        }
    }
    if (good && !options.keep) {
        std::filesystem::remove_all(scratch);
    } else {
        fmt::print(options.json ? stderr : stdout, "runs, ledgers and logs are in {}\n", scratch);
    }
    std::fflush(stdout);
    if (interrupted != 0) return kInterrupted;
    if (!good)
        fmt::print(
            stderr,
            "life: failed; the same trouble again: life --fabric {} --engines {} --seed {} --seconds {} --hard {}\n",
            options.fabric, options.engines, options.seed, options.seconds, options.hard);
    return good ? 0 : kFaulty;
}

}  // namespace
}  // namespace life

int main(int count, char** arguments) {
    life::Options options;
    options.seed = std::random_device()();
    if (const char* seed = std::getenv("ROVE_TEST_SEED")) options.seed = std::strtoull(seed, nullptr, 10);
    CLI::App app("Nodes and clients live through trouble; each piece of numbered work runs at most once.", "life");
    std::vector<std::string> fabrics;
    for (const auto& [name, choice] : life::kFabrics) fabrics.emplace_back(name);
    app.add_option("--fabric", options.fabric, "between all processes")
        ->check(CLI::IsMember(fabrics))
        ->capture_default_str();
    app.add_option("--engines", options.engines, "of each node")->check(CLI::Range(1U, 64U))->capture_default_str();
    app.add_option("--seconds", options.seconds, "of trouble")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--seed", options.seed,
                   "of the trouble and of what clients send (default: $ROVE_TEST_SEED, else a new one)");
    app.add_option("--rate", options.rate, "pieces of work a second, of each thread of each client")
        ->check(CLI::Range(1U, 10'000U))
        ->capture_default_str();
    app.add_option("--hard", options.hard, "how much trouble: 1 is something every 0.3 s")
        ->check(CLI::Range(0.01, 20.0))
        ->capture_default_str();
    app.add_flag("--keep", options.keep, "keep the scratch folder when all is well, too");
    app.add_flag("--json", options.json, "the summary as JSON");
    CLI11_PARSE(app, count, arguments);
    struct sigaction action{};
    action.sa_handler = [](int) { life::interrupted = 1; };
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
    return life::life(options);
}
