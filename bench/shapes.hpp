// The shapes of `rove bench`: a node is started on one core, this process is its client on another.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/report.hpp"

namespace rove::bench {

struct Settings {
    std::vector<std::string> modes = {"cached"};
    std::string function = "increment";
    std::vector<std::size_t> sizes;  // empty: the shape's own
    std::string fabric = "shm";
    bool against_ucx = false;
    std::string against_command;  // latency, rate, arrival, api: the user's yardstick; empty: none
    unsigned runs = 5;
    bool stress = false;                  // latency: while stress-ng works on memory on both cores
    std::vector<std::size_t> peers;       // idle: how many; empty: the shape's own
    std::vector<unsigned> engines = {2};  // engines: how many, beside one
    unsigned quiet_ms = 5000;             // idle: how long a peer is quiet before its first call
    std::vector<std::size_t> threads;     // threads: how many call; empty: the shape's own
    bool own_thread = false;              // threads: the client's node has threads of its own
    bool quick = false;                   // so short that the figures mean little: for tests
    std::filesystem::path rove;           // the command, for the node
    std::filesystem::path packages;       // where increment.rove and the others are
    std::filesystem::path sources;        // of arrival's packages
};

// Each appends its rows. They throw rove::Error.
void measure_latency(const Settings& settings, Report& report, Progress& progress);
void measure_rate(const Settings& settings, Report& report, Progress& progress);  // batches, too
void measure_bandwidth(const Settings& settings, Report& report, Progress& progress);
void measure_arrival(const Settings& settings, Report& report, Progress& progress);
void measure_crowd(const Settings& settings, Report& report, Progress& progress);  // eight nodes on two cores
void measure_wake(const Settings& settings, Report& report, Progress& progress);
void measure_engines(const Settings& settings, Report& report, Progress& progress);  // several of one node
// Threads of one program that call one peer.
void measure_threads(const Settings& settings, Report& report, Progress& progress);
void measure_idle(const Settings& settings, Report& report, Progress& progress);  // peers that do nothing

void measure_api(const Settings& settings, Report& report, Progress& progress);  // typed calls, buffers

}  // namespace rove::bench
