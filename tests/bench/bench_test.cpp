// The instrument works: each shape runs, says what it should, and leaves nothing behind. How fast anything is, is not asked.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "../node/process.hpp"
#include "../node/soon.hpp"
#include "bench/machine.hpp"
#include "bench/yardsticks.hpp"

namespace rove::test {
namespace {

using nlohmann::json;

json measure(std::vector<std::string> arguments) {
    static int number = 0;
    const std::string file = (scratch() / ("bench" + std::to_string(number++) + ".json")).string();
    std::vector<std::string> command{rove(), "bench"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--quick", "--runs", "1", "--json", file});
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

TEST(Bench, LatencyOfEveryMode) {
    const json report = measure({"latency", "--mode", "deliver,resident,cached,inline"});
    EXPECT_EQ(report.at("command"), "rove bench latency");
    EXPECT_GT(report.at("machine").at("cores").get<int>(), 0);
    EXPECT_FALSE(report.at("versions").at("ucx").get<std::string>().empty());
    ASSERT_EQ(report.at("rows").size(), 4U);
    for (const json& row : report.at("rows")) {
        EXPECT_EQ(row.at("what"), "latency");
        EXPECT_EQ(row.at("size"), 32);
        expect_ordered(row);
        EXPECT_GT(row.at("against").at("cache_line_ns").get<double>(), 0);
        EXPECT_NEAR(row.at("ratio").at("cache_line_ns").get<double>(),
                    row.at("one_way_ns").at("p50").get<double>() / row.at("against").at("cache_line_ns").get<double>(),
                    0.01);
    }
}

TEST(Bench, LatencyAgainstUcx) {
    for (const char* fabric : {"shm", "tcp"}) {
        const json report = measure({"latency", "--against", "ucx", "--fabric", fabric});
        ASSERT_EQ(report.at("rows").size(), 1U);
        const json& row = report.at("rows")[0];
        EXPECT_EQ(row.at("fabric"), fabric);
        EXPECT_GT(row.at("against").at("ucp_am_lat_ns").get<double>(), 0);
        EXPECT_EQ(row.at("against").contains("ucp_put_lat_ns"), fabric == std::string("shm"));
    }
}

TEST(Bench, TheOtherFunctions) {
    for (const char* function : {"sum", "indirect_put"}) {
        const json report = measure({"latency", "--function", function, "--mode", "resident,cached,inline"});
        ASSERT_EQ(report.at("rows").size(), 3U);
        for (const json& row : report.at("rows")) EXPECT_EQ(row.at("function"), function);
    }
}

TEST(Bench, RateAndBandwidth) {
    const json rate = measure({"rate", "--size", "8"});
    ASSERT_EQ(rate.at("rows").size(), 2U);  // single posts, and a batch
    for (const json& row : rate.at("rows")) {
        EXPECT_GT(row.at("per_second").get<double>(), 0);
        EXPECT_GT(row.at("against").at("raw_ring_per_second").get<double>(), 0);
    }
    const json bandwidth = measure({"bandwidth", "--function", "sum", "--size", "4096"});
    EXPECT_GT(bandwidth.at("rows").at(0).at("bytes_per_second").get<double>(), 0);
}

TEST(Bench, ArrivalAndWake) {
    EXPECT_EQ(measure({"arrival"}).at("rows").size(), 6U);  // two forms; cached, first, second function
    EXPECT_GT(measure({"crowd"}).at("rows").at(0).at("per_second").get<double>(), 0);
    const json wake = measure({"wake"});
    ASSERT_EQ(wake.at("rows").size(), 3U);
    EXPECT_GE(wake.at("rows")[0].at("core_share").get<double>(), 0);
}

TEST(Bench, TheRawRingLosesNothing) {
    EXPECT_GT(bench::raw_ring_per_second(bench::choose_cores(), bench::RingWork::increment, 32, 100'000), 0);
    EXPECT_GT(bench::raw_ring_per_second(bench::choose_cores(), bench::RingWork::sum, 4096, 5'000), 0);
}

TEST(Bench, WrongUsageSaysSo) {
    const std::vector<std::vector<std::string>> wrongs = {
        {"speed"}, {"latency", "--mode", "fast"}, {"latency", "--size", "1"}, {"latency", "--against", "mpi"}, {}};
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

// Its node is gone with it, whatever ends it.
TEST(Bench, LeavesNoProcessBehind) {
    for (const int number : {SIGINT, SIGKILL}) {
        const pid_t pid = fork_or_throw();
        if (pid == 0) {
            execl(rove().c_str(), "rove", "bench", "latency", "--runs", "1000", nullptr);
            _exit(127);
        }
        Ran before;
        ASSERT_TRUE(soon([&] {
            before = run({"pgrep", "-P", std::to_string(pid)});
            return before.status == 0;
        })) << "it has started no node";
        kill(pid, number);
        int status = 0;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        const int node = std::stoi(before.out);
        bool gone = false;
        for (int tries = 0; tries < 200 && !gone; ++tries) {
            gone = kill(node, 0) != 0 || run({"ps", "-o", "stat=", "-p", std::to_string(node)}).out.starts_with("Z");
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        EXPECT_TRUE(gone) << "node " << node << " is still there";
    }
}

TEST(Bench, Api) {
    const json report = measure({"api"});
    ASSERT_EQ(report.at("rows").size(), 29U);
    const json& sync = report.at("rows").at(0);
    EXPECT_EQ(sync.at("what"), "sync");
    EXPECT_GT(sync.at("ratio").at("raw_cached_ns").get<double>(), 0);
    EXPECT_GT(report.at("rows").at(2).at("per_second").get<double>(), 0);
    EXPECT_GT(report.at("rows").at(3).at("bytes_per_second").get<double>(), 0);
    std::size_t large = 0;
    for (const json& row : report.at("rows"))
        if (row.at("what") == "argument" || row.at("what") == "result") {
            ++large;
            EXPECT_GT(row.at("bytes_per_second").get<double>(), 0);
            const char* beside = row.at("what") == "argument" ? "put_bytes_per_second" : "get_bytes_per_second";
            EXPECT_GT(row.at("ratio").at(beside).get<double>(), 0);
        }
    EXPECT_EQ(large, 15U);
    EXPECT_EQ(report.at("rows").back().at("what"), "first call, taken out on the spot");
}

}  // namespace
}  // namespace rove::test
