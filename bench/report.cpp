#include "bench/report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "bench/machine.hpp"

namespace rove::bench {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Row& row) {
    Json json{
        {"what", row.what}, {"mode", row.mode}, {"function", row.function}, {"size", row.size}, {"fabric", row.fabric}};
    if (row.one_way_ns)
        json["one_way_ns"] = {{"min", row.one_way_ns->min},
                              {"p50", row.one_way_ns->p50},
                              {"p99", row.one_way_ns->p99},
                              {"p999", row.one_way_ns->p999}};
    const auto put = [&json](const char* name, const std::optional<double>& value) {
        if (value) json[name] = *value;
    };
    put("per_second", row.per_second);
    put("bytes_per_second", row.bytes_per_second);
    put("frame_bytes", row.frame_bytes);
    put("core_share", row.core_share);
    put("clients_share", row.clients_share);
    put("wakes_per_second", row.wakes_per_second);
    if (row.peers) json["peers"] = *row.peers;
    if (row.threads) json["threads"] = *row.threads;
    put("slowest_to_mean", row.slowest_to_mean);
    put("bytes_per_peer", row.bytes_per_peer);
    put("descriptors_per_peer", row.descriptors_per_peer);
    put("seconds", row.seconds);
    if (!row.against.empty()) json["against"] = row.against;
    if (!row.ratio.empty()) json["ratio"] = row.ratio;
    return json;
}

std::string figure(double value) {
    if (value >= 1e9) return fmt::format("{:.2f} G", value / 1e9);
    if (value >= 1e6) return fmt::format("{:.2f} M", value / 1e6);
    if (value >= 1e5) return fmt::format("{:.0f} k", value / 1e3);
    return fmt::format("{:.0f}", value);
}

std::string ours(const Row& row) {
    if (row.one_way_ns)
        return fmt::format("{:.0f} ns (min {:.0f}, 99 % {:.0f}, 99.9 % {:.0f}, spread {:.0f} %)", row.one_way_ns->p50,
                           row.one_way_ns->min, row.one_way_ns->p99, row.one_way_ns->p999,
                           100 * (row.one_way_ns->p999 / row.one_way_ns->p50 - 1));
    if (row.bytes_per_peer)
        return fmt::format("{:.0f} KiB", *row.bytes_per_peer / 1024) +
               (row.descriptors_per_peer ? fmt::format(", {:.1f} descriptors", *row.descriptors_per_peer) : "");
    if (row.seconds) return fmt::format("{:.3f} s", *row.seconds);
    if (row.bytes_per_second && (row.what == "bandwidth" || !row.per_second))
        return figure(*row.bytes_per_second) + "B/s";
    if (row.per_second)
        return figure(*row.per_second) + "/s" +
               (row.clients_share ? fmt::format(", clients {:.0f} % of a core", 100 * *row.clients_share) : "") +
               (row.slowest_to_mean ? fmt::format(", the slowest thread {:.2f} of the mean", *row.slowest_to_mean)
                                    : "");
    if (row.core_share)
        return fmt::format("{:.2f} % of a core", 100 * *row.core_share) +
               (row.wakes_per_second ? fmt::format(", {:.1f} wake-ups/s", *row.wakes_per_second) : "");
    return "";
}

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Json Report::json() const {
    Json json;
    json["machine"] = {{"cpu", cpu_name()}, {"cores", sysconf(_SC_NPROCESSORS_ONLN)}, {"kernel", kernel_name()}};
    json["versions"] = {{"rove", ROVE_VERSION}, {"ucx", ucx_version()}, {"llvm", ROVE_LLVM_VERSION}};
    json["command"] = command;
    if (!against_command.empty()) json["against_command"] = against_command;
    json["rows"] = Json::array();
    for (const Row& row : rows) json["rows"].push_back(json_of(row));
    if (!notes.empty()) json["notes"] = notes;
    return json;
}

std::string Report::table() const {
    std::string text =
        "| what | mode | function | bytes | fabric | Rove | ratio to |\n| --- | --- | --- | --- | --- | --- | --- |\n";
    for (const Row& row : rows) {
        std::string ratios;
        for (const auto& [name, value] : row.ratio)
            ratios += fmt::format("{}{} {:.2f}", ratios.empty() ? "" : ", ", name.substr(0, name.rfind('_')), value);
        text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", row.what, row.mode, row.function, row.size,
                            row.fabric, ours(row), ratios);
    }
    for (const std::string& note : notes) text += "\n" + note + "\n";
    return text;
}

void Progress::say(const std::string& text) {
    const double now = seconds_now();
    if (begin_ == 0) begin_ = now;
    if (now - begin_ < 2) return;
    if (isatty(2) != 0) {
        std::fprintf(stderr, "\r\033[K%s", text.c_str());
        shown_ = true;
    } else if (now - said_ >= 10) {
        std::fprintf(stderr, "%s\n", text.c_str());
        said_ = now;
    }
}

Progress::~Progress() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
}

}  // namespace rove::bench
