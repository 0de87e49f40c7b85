// The instrument works: each shape runs, says what it should, and leaves nothing behind. How fast anything is, is not asked; but what it
// says has to agree with itself and with the machine: a figure in another unit, of another mode or compared with another would not.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "../node/process.hpp"
#include "../node/soon.hpp"
#include "bench/against_command.hpp"
#include "bench/machine.hpp"
#include "bench/usage.hpp"
#include "bench/yardsticks.hpp"
#include "rove/error.hpp"

namespace rove::test {
namespace {

using nlohmann::json;

json measure(std::vector<std::string> arguments, const std::string& runs = "1") {
    static int number = 0;
    const std::string file = (scratch() / ("bench" + std::to_string(number++) + ".json")).string();
    std::vector<std::string> command{rove(), "bench"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--quick", "--runs", runs, "--json", file});
    const Ran ran = run(command, std::chrono::seconds(180));  // each wait takes long where others have the cores
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find("| what | mode |"), std::string::npos) << ran.out;
    std::ifstream stream(file);
    return json::parse(stream, nullptr, false);
}

void expect_ordered(const json& row) {
    const json& ns = row.at("one_way_ns");
    EXPECT_GT(ns.at("min").get<double>(), 0) << row;
    EXPECT_LE(ns.at("min"), ns.at("p50")) << row;
    EXPECT_LE(ns.at("p50"), ns.at("p99")) << row;
    EXPECT_LE(ns.at("p99"), ns.at("p999")) << row;
}

// With one run each ratio is that of the row's figure to what it is compared with, in the same unit.
void expect_compared(const json& row, const std::set<std::string>& with) {
    std::set<std::string> named;
    const json against = row.value("against", json::object());
    for (const auto& [name, theirs] : against.items()) {
        named.insert(name);
        const double ours = name.ends_with("_p99_ns")             ? row.at("one_way_ns").at("p99").get<double>()
                            : name.ends_with("_bytes_per_second") ? row.at("bytes_per_second").get<double>()
                            : name.ends_with("_per_second")       ? row.at("per_second").get<double>()
                                                                  : row.at("one_way_ns").at("p50").get<double>();
        EXPECT_GT(theirs.get<double>(), 0) << row;
        EXPECT_NEAR(row.at("ratio").at(name).get<double>() / (ours / theirs.get<double>()), 1, 1e-6) << row;
    }
    EXPECT_EQ(named, with) << row;
}

// Nothing arrives sooner than a line of memory gets from core to core. (A tenth of that: the machine may be busy while it is measured.)
void expect_possible(const json& row) {
    EXPECT_GT(row.at("one_way_ns").at("p50").get<double>(), row.at("against").at("cache_line_ns").get<double>() / 10)
        << row;
}

TEST(Bench, LatencyOfEveryMode) {
    const json report = measure({"latency", "--mode", "deliver,resident,cached,inline"});
    EXPECT_EQ(report.at("command"), "rove bench latency");
    EXPECT_GT(report.at("machine").at("cores").get<int>(), 0);
    EXPECT_FALSE(report.at("versions").at("ucx").get<std::string>().empty());
    const std::vector<std::string> modes{"deliver", "resident", "cached", "inline"};
    ASSERT_EQ(report.at("rows").size(), modes.size());
    for (std::size_t i = 0; i < modes.size(); ++i) {
        const json& row = report.at("rows")[i];
        EXPECT_EQ(row.at("what"), "latency");
        EXPECT_EQ(row.at("mode"), modes[i]);
        EXPECT_EQ(row.at("size"), 32);
        EXPECT_EQ(row.at("frame_bytes").get<double>() > 200, modes[i] == "inline")
            << "the code is not where it should be";
        expect_ordered(row);
        expect_possible(row);
        expect_compared(row, {"cache_line_ns"});
    }
}

TEST(Bench, LatencyAgainstUcx) {
    for (const char* fabric : {"shm", "tcp"}) {
        const json report = measure({"latency", "--against", "ucx", "--fabric", fabric});
        ASSERT_EQ(report.at("rows").size(), 1U);
        const json& row = report.at("rows")[0];
        EXPECT_EQ(row.at("fabric"), fabric);
        std::set<std::string> with{"cache_line_ns", "ucp_am_lat_ns"};
        if (fabric == std::string("shm")) with.insert("ucp_put_lat_ns");
        expect_compared(row, with);
    }
}

TEST(Bench, TheOtherFunctions) {
    for (const char* function : {"sum", "indirect_put"}) {
        const json report = measure({"latency", "--function", function, "--mode", "resident,cached,inline"});
        ASSERT_EQ(report.at("rows").size(), 3U);
        for (const json& row : report.at("rows")) {
            EXPECT_EQ(row.at("function"), function);
            EXPECT_EQ(row.at("frame_bytes").get<double>() > 200, row.at("mode") == "inline") << row;
            expect_ordered(row);
            expect_possible(row);
            expect_compared(row, {"cache_line_ns"});
        }
    }
}

TEST(Bench, RateAndBandwidth) {
    const json rate = measure({"rate", "--size", "8"});
    ASSERT_EQ(rate.at("rows").size(), 2U);
    EXPECT_EQ(rate.at("rows")[0].at("mode"), "cached");
    EXPECT_EQ(rate.at("rows")[1].at("mode"), "cached, batch");
    const json bandwidth = measure({"bandwidth", "--function", "sum", "--size", "4096"});
    ASSERT_EQ(bandwidth.at("rows").size(), 1U);
    EXPECT_EQ(bandwidth.at("rows")[0].at("function"), "sum");
    for (const json& row : {rate.at("rows")[0], rate.at("rows")[1], bandwidth.at("rows")[0]}) {
        EXPECT_EQ(row.at("size"), row.at("what") == "rate" ? 8 : 4096);
        EXPECT_DOUBLE_EQ(row.at("bytes_per_second").get<double>(),
                         row.at("per_second").get<double>() * row.at("size").get<double>());
        expect_compared(row, {"raw_ring_per_second"});
    }
}

TEST(Bench, ArrivalAndWake) {
    const json arrival = measure({"arrival"});
    ASSERT_EQ(arrival.at("rows").size(), 6U);
    for (std::size_t form = 0; form < 2; ++form) {
        const auto row = [&](std::size_t i) { return arrival.at("rows")[3 * form + i]; };
        const std::string name = form == 0 ? "image: " : "bitcode: ";
        EXPECT_EQ(row(0).at("mode"), name + "round trip, cached");
        EXPECT_EQ(row(1).at("mode"), name + "first call, over that");
        EXPECT_EQ(row(2).at("mode"), name + "second function of a package, over that");
        expect_ordered(row(0));
        // Code is read, sent and loaded between the one and the other.
        EXPECT_GT(row(1).at("one_way_ns").at("p50").get<double>(), 0) << "the first call was no first call";
    }
    const json crowd = measure({"crowd"});
    ASSERT_EQ(crowd.at("rows").size(), 1U);
    expect_compared(crowd.at("rows")[0], {"two_nodes_per_second"});
    const json wake = measure({"wake"});
    ASSERT_EQ(wake.at("rows").size(), 3U);
    const auto share = [&wake](std::size_t row) { return wake.at("rows")[row].at("core_share").get<double>(); };
    EXPECT_EQ(wake.at("rows")[0].at("mode"), "balanced, nothing arrives");
    EXPECT_EQ(wake.at("rows")[2].at("mode"), "latency, nothing arrives");
    EXPECT_LT(share(0), share(2)) << "a node that sleeps uses more of a core than one that spins";
    EXPECT_EQ(wake.at("rows")[1].at("mode"), "call to a sleeping node, over a cached one");
    EXPECT_TRUE(wake.at("rows")[1].at("against").contains("kernel_wake_ns"));
}

// Each number of threads is compared with one, and none of them has made more than its part of the calls.
void expect_threads(const json& rows, const std::vector<std::size_t>& counts, const std::string& fabric,
                    const std::string& ending) {
    ASSERT_EQ(rows.size(), 2 * counts.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::size_t threads = counts[i % counts.size()];
        const json& row = rows[i];
        EXPECT_EQ(row.at("what"), "threads");
        EXPECT_EQ(row.at("mode"),
                  std::to_string(threads) + (i < counts.size() ? " on one core" : " on both cores") + ending);
        EXPECT_EQ(row.at("threads"), threads);
        EXPECT_EQ(row.at("fabric"), fabric);
        EXPECT_EQ(row.at("size"), 8);
        EXPECT_GT(row.at("per_second").get<double>(), 0) << row;
        expect_compared(row, threads == 1 ? std::set<std::string>() : std::set<std::string>{"one_thread_per_second"});
        EXPECT_EQ(row.contains("slowest_to_mean"), threads > 1) << row;
        EXPECT_GE(row.value("slowest_to_mean", 0.0), 0) << row;
        EXPECT_LE(row.value("slowest_to_mean", 0.0), 1) << row;
    }
}

TEST(Bench, Threads) {
    for (const char* fabric : {"shm", "tcp"}) {
        SCOPED_TRACE(fabric);
        const json report = measure({"threads", "--fabric", fabric});
        EXPECT_EQ(report.at("command"), "rove bench threads");
        expect_threads(report.at("rows"), {1, 2, 4, 8}, fabric, "");
    }
    const json served = measure({"threads", "--threads", "3,1", "--own-thread"});
    expect_threads(served.at("rows"), {3, 1}, "shm", ", node with own threads");
}

TEST(Bench, Engines) {
    const json report = measure({"engines", "--engines", "2,3"});
    EXPECT_EQ(report.at("command"), "rove bench engines");
    const json& rows = report.at("rows");
    ASSERT_EQ(rows.size(), 6U);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::string engines = i < 3 ? "2 engines: " : "3 engines: ";
        EXPECT_EQ(rows[i].at("what"), "engines");
        EXPECT_TRUE(rows[i].at("mode").get<std::string>().starts_with(engines)) << rows[i];
        if (i % 3 == 0) {
            EXPECT_GT(rows[i].at("per_second"), 0);
            EXPECT_GT(rows[i].at("clients_share"), 0);
            EXPECT_GT(rows[i].at("ratio").at("one_engine_per_second"), 0);
        } else {
            expect_ordered(rows[i]);
            EXPECT_GT(rows[i].at("ratio").at("one_engine_ns"), 0);
        }
    }
}

// What is said of peers that do nothing. How much they cost is not asked; but each figure is one peer's, and every peer has met the node.
void expect_idle(const json& rows, std::size_t peers, const std::string& fabric) {
    std::map<std::string, json> found;
    const std::string begin = std::to_string(peers) + " idle: ";
    for (const json& row : rows) {
        if (row.at("peers") != peers) continue;
        EXPECT_EQ(row.at("what"), "idle");
        EXPECT_EQ(row.at("fabric"), fabric);
        const std::string mode = row.at("mode").get<std::string>();
        ASSERT_TRUE(mode.starts_with(begin)) << mode;
        if (row.contains("one_way_ns")) expect_ordered(row);
        EXPECT_TRUE(found.emplace(mode.substr(begin.size()), row).second) << mode << " is there twice";
    }
    std::set<std::string> modes;
    for (const auto& [mode, row] : found) modes.insert(mode);
    std::set<std::string> wanted{"node, nothing arrives", "round trip, cached"};
    if (peers > 0)
        wanted.insert({"meeting, first tenth", "meeting, last tenth", "meetings, 4 at once", "each peer, at the node",
                       "each peer, at the clients", "each peer, at both ends, shared pages once",
                       "first call after 50 ms"});
    ASSERT_EQ(modes, wanted);
    const json& still = found.at("node, nothing arrives");
    EXPECT_GE(still.at("core_share").get<double>(), 0);
    EXPECT_GE(still.at("wakes_per_second").get<double>(), 0);
    if (peers == 0) return expect_compared(found.at("round trip, cached"), {});
    expect_compared(found.at("round trip, cached"), {"none_idle_ns", "none_idle_p99_ns"});
    expect_compared(found.at("meeting, first tenth"), {});
    expect_compared(found.at("meeting, last tenth"), {"first_tenth_ns"});
    expect_compared(found.at("first call after 50 ms"), {"warm_call_ns"});
    const json& together = found.at("meetings, 4 at once");
    EXPECT_NEAR(together.at("per_second").get<double>() * together.at("seconds").get<double>(),
                static_cast<double>(peers), 1e-6);
    for (const auto& [mode, row] : found) {
        if (!mode.starts_with("each peer")) continue;
        EXPECT_LT(row.at("bytes_per_peer").get<double>(), 64 << 20U) << row;
        // Other processes that begin and end take a part in the pages of libraries, and give it back.
        if (mode == "each peer, at both ends, shared pages once") continue;
        EXPECT_GT(row.at("bytes_per_peer").get<double>(), 0) << row;
        EXPECT_GE(row.at("descriptors_per_peer").get<double>(), 1) << row;  // the connection by which they met
        EXPECT_LT(row.at("descriptors_per_peer").get<double>(), 8) << row;
    }
}

TEST(Bench, Idle) {
    for (const char* fabric : {"shm", "tcp"}) {
        SCOPED_TRACE(fabric);
        const json report = measure({"idle", "--peers", "0,8", "--quiet-ms", "50", "--fabric", fabric});
        EXPECT_EQ(report.at("command"), "rove bench idle");
        ASSERT_EQ(report.at("rows").size(), 11U);
        expect_idle(report.at("rows"), 0, fabric);
        expect_idle(report.at("rows"), 8, fabric);
    }
}

TEST(Bench, SeesWhatAProcessHolds) {
    constexpr std::size_t kBytes = 64 << 20U;
    const bench::Footprint before = bench::footprint_of(getpid());
    EXPECT_LE(before.proportional_bytes, before.resident_bytes);
    const std::vector<char> touched(kBytes, 1);
    const std::ifstream open("/proc/self/status");
    const bench::Footprint after = bench::footprint_of(getpid());
    EXPECT_GE(after.resident_bytes - before.resident_bytes, kBytes) << touched.back();
#if __has_feature(thread_sanitizer)
    constexpr std::size_t kMost = 6 * kBytes;  // it keeps some bytes for each that is touched
#else
    constexpr std::size_t kMost = 2 * kBytes;
#endif
    EXPECT_LT(after.resident_bytes - before.resident_bytes, kMost);
    EXPECT_EQ(after.descriptors - before.descriptors, 1);
}

TEST(Bench, SeesWhatAProcessDoes) {
    using Clock = std::chrono::steady_clock;
    const auto seconds_since = [](Clock::time_point begin) {
        return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    const Clock::time_point begin = Clock::now();
    const bench::Activity activity(getpid());
    for (int i = 0; i < 50; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const double wakes = activity.wakes_per_second();
    EXPECT_GE(wakes * seconds_since(begin), 50);
    for (const std::clock_t until = std::clock() + CLOCKS_PER_SEC / 5; std::clock() < until;) continue;
    const double share = activity.core_share();
    EXPECT_GT(share * seconds_since(begin), 0.1);
    EXPECT_LT(share, 2);
}

// The command is run once in each run, on the two cores, and is told what Rove's sides are given.
TEST(Bench, AgainstACommand) {
    const std::string file = (scratch() / "told").string();
    const std::string command =
        "echo $ROVE_BENCH_BYTES $ROVE_BENCH_CLIENT_CORE $ROVE_BENCH_NODE_CORE"
        " $(grep Cpus_allowed_list /proc/self/status) >> " +
        file + "; echo per_second=7; echo p50_ns=$(wc -l < " + file + ")e3";
    const json report = measure({"latency", "--size", "64", "--against-command", command}, "3");
    EXPECT_EQ(report.at("against_command"), command);
    ASSERT_EQ(report.at("rows").size(), 1U);
    const json& row = report.at("rows")[0];
    EXPECT_EQ(row.at("against").at("command_ns"), 2000) << "of the runs, which printed 1000, 2000 and 3000, the median";
    EXPECT_GT(row.at("ratio").at("command_ns").get<double>(), 0);
    const bench::Cores cores = bench::choose_cores();
    std::ifstream told(file);
    int lines = 0;
    for (std::string line; std::getline(told, line); ++lines) {
        const std::string list = line.substr(line.rfind(' ') + 1);
        EXPECT_TRUE(line.starts_with("64 " + std::to_string(cores.client) + " " + std::to_string(cores.node) + " "))
            << line;
        const auto [low, high] = std::minmax(cores.client, cores.node);
        const std::string comma = std::to_string(low) + "," + std::to_string(high);
        const std::string range = std::to_string(low) + "-" + std::to_string(high);
        EXPECT_TRUE(list == comma || list == range || (low == high && list == std::to_string(low))) << line;
    }
    EXPECT_EQ(lines, 3);
}

TEST(Bench, EveryShapeThatTakesACommandCompares) {
    const std::string command = "echo p50_ns=1e2; echo per_second=2000.5; echo first_ns=300";
    const json rate = measure({"rate", "--size", "8", "--against-command", command});
    ASSERT_EQ(rate.at("rows").size(), 2U);
    for (const json& row : rate.at("rows")) {
        expect_compared(row, {"raw_ring_per_second", "command_per_second"});
        EXPECT_EQ(row.at("against").at("command_per_second"), 2000.5);
    }
    const json arrival = measure({"arrival", "--against-command", command});
    ASSERT_EQ(arrival.at("rows").size(), 6U);
    for (const json& row : arrival.at("rows")) {
        const bool is_first = row.at("mode").get<std::string>().ends_with(": first call, over that");
        expect_compared(row, is_first ? std::set<std::string>{"command_ns"} : std::set<std::string>());
        if (is_first) EXPECT_EQ(row.at("against").at("command_ns"), 300);
    }
    const json rounds = measure({"arrival", "--against-command", command}, "3");
    EXPECT_EQ(rounds.at("rows").size(), 6U) << "more runs than --quick has packages";
}

// Nothing is measured against a command that does not say what is asked of it, and the reason names the command.
TEST(Bench, WrongCommandsSaySo) {
    struct Wrong {
        std::string command, says;
    };
    const std::vector<Wrong> wrongs = {
        {"echo p50_ns=5; echo it broke >&2; exit 3", "status 3: it broke"},
        {"no-such-program", "status 127"},
        {"kill -9 $$", "status 137"},
        {"echo first_ns=5; echo 50 ns", "no line p50_ns=NUMBER; its last line is '50 ns'"},
        {"true", "no line p50_ns=NUMBER"},
        {"echo p50_ns=", "no positive number"},
        {"echo p50_ns=fast", "'p50_ns=fast', whose value is no positive number"},
        {"echo p50_ns=5ns", "no positive number"},
        {"echo p50_ns=-5", "no positive number"},
        {"echo p50_ns=0", "no positive number"},
        {"echo p50_ns=nan", "no positive number"},
        {"echo p50_ns=inf", "no positive number"},
        {"echo p50_ns=1e999", "no positive number"},
        {"echo p50_ns=5; echo p50_ns=6", "more than once"},
        {"head -c 1100000 /dev/zero; echo p50_ns=5", "more than 1024 KiB"},
    };
    for (const Wrong& wrong : wrongs) {
        SCOPED_TRACE(wrong.command);
        try {
            const double figure = bench::figure_of_command(wrong.command, "p50_ns", 8);
            ADD_FAILURE() << figure;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::failed);
            EXPECT_NE(std::string(error.what()).find(wrong.says), std::string::npos) << error.what();
            EXPECT_NE(std::string(error.what()).find("`" + wrong.command + "`"), std::string::npos) << error.what();
        }
    }
    EXPECT_EQ(bench::figure_of_command("printf ' p50_ns=1\nmy_p50_ns=2\np50_ns=3.5 \r\n'", "p50_ns", 8), 3.5);
    const Ran ran = run({rove(), "bench", "latency", "--quick", "--runs", "1", "--against-command", "echo 1"});
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.err.find("no line p50_ns=NUMBER"), std::string::npos) << ran.err;
}

// Process `pid` has ended. (A zombie has: who has to reap it may be busy.)
bool is_gone(int pid) {
    return kill(pid, 0) != 0 || run({"ps", "-o", "stat=", "-p", std::to_string(pid)}).out.starts_with("Z");
}

TEST(Bench, ACommandThatTakesTooLongEndsWithWhatItStarted) {
    const std::string file = (scratch() / "slow").string();
    try {
        (void)bench::figure_of_command("sleep 1000 & echo $! > " + file + "; echo p50_ns=5; sleep 1000", "p50_ns", 8,
                                       std::chrono::milliseconds(500));
        ADD_FAILURE() << "it was waited for";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::timed_out);
        EXPECT_NE(std::string(error.what()).find("after 0.5 s"), std::string::npos) << error.what();
    }
    int started = 0;
    ASSERT_TRUE(std::ifstream(file) >> started);
    EXPECT_TRUE(soon([&] { return is_gone(started); })) << "process " << started << " is still there";
}

TEST(Bench, AnInterruptedCommandEndsWithWhatItStarted) {
    const std::string file = (scratch() / "interrupted").string();
    Process bench = value_or_throw(Process::start(
        {rove(), "bench", "latency", "--against-command", "sleep 1000 & echo $! > " + file + "; sleep 1000"}));
    int started = 0;
    ASSERT_TRUE(soon([&] { return !!(std::ifstream(file) >> started); }));
    bench.signal(SIGINT);
    EXPECT_EQ(bench.wait(), 128 + SIGINT);
    EXPECT_TRUE(soon([&] { return is_gone(started); })) << "process " << started << " is still there";
}

// It throws where the reader has not seen every frame.
TEST(Bench, TheRawRingLosesNothing) {
    const bench::Cores cores = bench::choose_cores();
    EXPECT_NO_THROW((void)bench::raw_ring_per_second(cores, bench::RingWork::increment, 32, 100'000));
    EXPECT_NO_THROW((void)bench::raw_ring_per_second(cores, bench::RingWork::sum, 4096, 5'000));
}

TEST(Bench, WrongUsageSaysSo) {
    const std::vector<std::vector<std::string>> wrongs = {{"speed"},
                                                          {"latency", "--mode", "fast"},
                                                          {"latency", "--size", "1"},
                                                          {"latency", "--against", "mpi"},
                                                          {"latency", "--against-command", ""},
                                                          {"latency", "--against-command"},
                                                          {"bandwidth", "--against-command", "echo per_second=1"},
                                                          {"tables", "--against-command", "echo per_second=1"},
                                                          {"threads", "--threads", "0"},
                                                          {"threads", "--threads", "257"},
                                                          {"threads", "--threads", "many"},
                                                          {"engines", "--engines", "1"},
                                                          {"engines", "--engines", "65"},
                                                          {"idle", "--peers", "16384"},
                                                          {"idle", "--peers", "many"},
                                                          {"idle", "--quiet-ms", "-1"},
                                                          {}};
    for (std::vector<std::string> arguments : wrongs) {
        arguments.insert(arguments.begin(), {rove(), "bench"});
        const Ran ran = run(arguments);
        EXPECT_EQ(ran.status, 2) << ran.out;
        EXPECT_FALSE(ran.err.empty());
    }
    const Ran missing = run({rove(), "bench", "latency", "--packages", scratch().string()});
    EXPECT_EQ(missing.status, 1);
    EXPECT_NE(missing.err.find("increment.rove"), std::string::npos) << missing.err;
    // What only the last of its tables need is missed before the first is measured.
    const std::string nowhere = (scratch() / "nowhere").string();
    for (const char* const flag : {"--sources", "--json"}) {
        const Ran late = run({rove(), "bench", "tables", "--quick", "--runs", "1", flag, nowhere + "/it"});
        EXPECT_EQ(late.status, 1);
        EXPECT_NE(late.err.find(nowhere), std::string::npos) << late.err;
        EXPECT_EQ(late.err.find("run 1 of"), std::string::npos) << late.err;
    }
}

// What it has started is gone with it, whatever ends it, and its files where it can see to that.
void expect_nothing_left(const std::vector<std::string>& arguments, std::size_t processes, int number) {
    const std::filesystem::path temporary = scratch() / ("bench-" + arguments.front() + std::to_string(number));
    std::filesystem::create_directory(temporary);
    std::vector<std::string> command{rove(), "bench"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    Process bench = value_or_throw(Process::start(command, {.environment = {"TMPDIR=" + temporary.string()}}));
    std::vector<int> started;
    ASSERT_TRUE(soon([&] {
        std::istringstream numbers(run({"pgrep", "-P", std::to_string(bench.pid())}).out);
        started.assign(std::istream_iterator<int>(numbers), {});
        return started.size() == processes;
    })) << "it has started "
        << started.size() << " of " << processes << " processes";
    bench.signal(number);
    EXPECT_EQ(bench.wait(), 128 + number);
    for (const int each : started)
        EXPECT_TRUE(soon([each] { return is_gone(each); })) << "process " << each << " is still there";
    if (number == SIGINT) EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

// As scripts have it: the figures alone on the standard output.
TEST(Bench, WritesItsFiguresToStdout) {
    const Ran ran =
        run({rove(), "bench", "latency", "--mode", "cached", "--size", "8", "--quick", "--runs", "1", "--json", "-"},
            std::chrono::seconds(180));
    EXPECT_EQ(ran.status, 0) << ran.err;
    const json report = json::parse(ran.out, nullptr, false);
    ASSERT_TRUE(report.is_object()) << ran.out;
    EXPECT_FALSE(report.value("rows", json::array()).empty());
    EXPECT_NE(ran.err.find("| what | mode |"), std::string::npos) << ran.err;
    EXPECT_FALSE(std::filesystem::exists("-"));
}

TEST(Bench, LeavesNothingBehind) {
    for (const int number : {SIGINT, SIGKILL}) {
        expect_nothing_left({"latency", "--runs", "1000"}, 1, number);
        // Two nodes, and a process of peers.
        expect_nothing_left({"idle", "--peers", "2", "--runs", "1000"}, 3, number);
    }
}

TEST(Bench, Api) {
    const json report = measure({"api", "--against-command", "echo p50_ns=300"});
    ASSERT_EQ(report.at("rows").size(), 29U);
    std::map<std::string, std::size_t> rows;
    for (const json& row : report.at("rows")) {
        const std::string what = row.at("what").get<std::string>();
        const bool alone = rows[what]++ > 0 && (what == "put" || what == "get");  // the first of them is compared
        SCOPED_TRACE(row);
        if (what == "sync" && row.at("function") == "empty") {
            expect_compared(row, {"command_ns"});
            EXPECT_EQ(row.at("against").at("command_ns"), 150) << "the row is half of a round trip";
        } else if (what == "sync")
            expect_compared(row, {"raw_cached_ns"});
        else if (what == "async, 64 in flight")
            expect_compared(row, {"raw_cached_per_second"});
        else if (what == "put" || what == "get")
            expect_compared(row, alone ? std::set<std::string>() : std::set<std::string>{"memcpy_bytes_per_second"});
        else if (what == "argument" || what == "result")
            expect_compared(row, {what == "argument" ? "put_bytes_per_second" : "get_bytes_per_second"});
        else
            expect_compared(row, {"raw_cached_ns"});
    }
    const std::map<std::string, std::size_t> wanted{{"sync", 2},
                                                    {"async, 64 in flight", 1},
                                                    {"put", 4},
                                                    {"get", 4},
                                                    {"argument", 9},
                                                    {"result", 6},
                                                    {"first call, image", 1},
                                                    {"first call, taken out on the spot", 1},
                                                    {"a program's and its node's very first call", 1}};
    EXPECT_EQ(rows, wanted);
}

}  // namespace
}  // namespace rove::test
