// What a benchmark found: rows, for people and for scripts. docs/bench.md describes the JSON.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace rove::bench {

struct OneWay {  // ns; of one run the percentiles over its samples, of a row the medians over its runs
    double min = 0, p50 = 0, p99 = 0, p999 = 0;
};

struct Row {
    std::string what;  // latency, rate, bandwidth, arrival, wake, engines, threads, idle
    std::string mode;  // deliver, resident, cached, inline; arrival: the form
    std::string function;
    std::size_t size = 0;  // payload bytes
    std::string fabric;
    std::optional<OneWay> one_way_ns;
    std::optional<double> per_second, bytes_per_second, frame_bytes;
    std::optional<double> core_share;        // wake, idle: of one core, by the node while nothing arrives
    std::optional<double> wakes_per_second;  // idle: of the node's threads, while nothing arrives
    std::optional<double> clients_share;     // engines: of one core, by all clients together
    std::optional<std::size_t> peers;        // idle: how many
    std::optional<double> bytes_per_peer, descriptors_per_peer;  // idle
    std::optional<std::size_t> threads;                          // threads: how many call
    std::optional<double> slowest_to_mean;  // threads: calls of the slowest thread by the mean of all
    std::optional<double> seconds;          // idle: until all had met the node
    std::map<std::string, double> against;
    std::map<std::string, double> ratio;  // medians over the runs of ours / theirs in the same run
};

struct Report {
    std::string command;
    std::string against_command;  // the user's yardstick; empty: none
    std::vector<Row> rows;
    std::vector<std::string> notes;  // what could not be measured, and why
    [[nodiscard]] nlohmann::ordered_json json() const;
    [[nodiscard]] std::string table() const;  // Markdown, as wide as it needs to be
};

// One line on standard error that says where a long benchmark is; silent for the first two seconds.
class Progress {
public:
    ~Progress();
    void say(const std::string& text);

private:
    double begin_ = 0, said_ = 0;
    bool shown_ = false;
};

}  // namespace rove::bench
