// `rove bench api`: what typed calls cost beside raw ones, and remote buffers beside memcpy.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "bench/against_command.hpp"
#include "bench/machine.hpp"
#include "bench/shapes.hpp"
#include "bench/sides.hpp"
#include "bench/yardsticks.hpp"
#include "rove/error.hpp"

namespace rove::bench {
namespace {

using Figures = std::map<std::string, double>;

Figures measured(const Settings& settings, const Scratch& scratch, const std::string& program,
                 const std::vector<std::string>& flags, const std::vector<std::string>& arguments) {
    const Cores cores = choose_cores();
    const std::string cookie = (scratch.path() / "cookie").string();
    const StartedNode node = start_node(settings.rove, cookie, cores.node, flags);
    const std::filesystem::path path = settings.rove.parent_path() / program;
    std::vector<std::string> client{path.string(), arguments.front(), node.address};
    client.insert(client.end(), arguments.begin() + 1, arguments.end());
    const std::filesystem::path cache = scratch.path() / "cache";
    std::filesystem::remove_all(cache);
    const std::string errors = (scratch.path() / "client-says").string();
    Process run = value_or_throw(
        start_side(client, cores.client, {"ROVE_COOKIE=" + cookie, "ROVE_CACHE=" + cache.string()}, errors));
    const Ran ran = run.communicate();
    if (ran.status != 0) throw Error(ErrorCode::failed, fmt::format("{} ended with {}", program, ran.status));
    std::istringstream said(ran.out);
    Figures figures;
    std::string name;
    for (double value = 0; said >> name >> value;) figures[name] = value;
    return figures;
}

class Column {
public:
    // Name "": there is nothing to compare it with.
    void add(double ours, const std::string& name, double theirs) {
        ours_.push_back(ours);
        if (name.empty()) return;
        theirs_[name].push_back(theirs);
        ratios_[name].push_back(ours / theirs);
    }
    [[nodiscard]] double middle() const { return median(ours_); }
    [[nodiscard]] Row row(const std::string& what, const std::string& function, std::size_t size,
                          const std::string& fabric) const {
        Row row{.what = what, .mode = "api", .function = function, .size = size, .fabric = fabric};
        for (const auto& [name, values] : theirs_) row.against[name] = median(values);
        for (const auto& [name, values] : ratios_) row.ratio[name] = median(values);
        return row;
    }

private:
    std::vector<double> ours_;
    std::map<std::string, std::vector<double>> theirs_, ratios_;
};

// What large arguments and results are compared with; program.cpp has the same names.
struct Large {
    std::string name, what, function, beside;
};
const std::vector<Large>& large_rows() {
    static const std::vector<Large> rows{{"put", "put", "", ""},
                                         {"get", "get", "", ""},
                                         {"text_argument", "argument", "std::string", "put"},
                                         {"values_argument", "argument", "std::vector<double>", "put"},
                                         {"view_argument", "argument", "std::span<const double>", "put"},
                                         {"text_result", "result", "std::string", "get"},
                                         {"values_result", "result", "std::vector<double>", "get"}};
    return rows;
}
constexpr std::size_t kLargeMib[] = {1, 4, 31};

OneWay one_way(double round_trip_ns) {
    const double half = round_trip_ns / 2;
    return {half, half, half, half};
}

}  // namespace

void measure_api(const Settings& settings, Report& report, Progress& progress) {
    const Scratch scratch;
    Column sync, empty, rate, put, get, image, bitcode, very_first;
    std::map<std::pair<std::string, std::size_t>, Column> larges;
    const std::string ms = settings.quick ? "20" : "500";
    for (unsigned run = 0; run < settings.runs; ++run) {
        progress.say(fmt::format("typed calls, run {} of {}", run + 1, settings.runs));
        const std::optional<double> command = command_figure(settings, kMedianKey, 0);
        const Figures f = measured(settings, scratch, "rove_bench_api", {"--fabric", settings.fabric},
                                   {"steady", (settings.packages / "increment.rove").string(), settings.fabric, ms});
        sync.add(f.at("sync_ns") / 2, "raw_cached_ns", f.at("raw_ns") / 2);
        empty.add(f.at("empty_ns") / 2, command ? "command_ns" : "", command.value_or(0) / 2);
        rate.add(f.at("async_rate"), "raw_cached_per_second", f.at("raw_rate"));
        constexpr double kBytes = 1 << 20U;
        put.add(kBytes / f.at("put_ns") * 1e9, "memcpy_bytes_per_second", kBytes / f.at("memcpy_ns") * 1e9);
        get.add(kBytes / f.at("get_ns") * 1e9, "memcpy_bytes_per_second", kBytes / f.at("memcpy_ns") * 1e9);
        for (const std::size_t mib : kLargeMib) {
            const double bytes = static_cast<double>(mib << 20U);
            const auto rate_of = [&](const std::string& name) {
                return bytes / f.at(fmt::format("{}_{}_ns", name, mib)) * 1e9;
            };
            for (const Large& each : large_rows())
                larges[{each.name, mib}].add(rate_of(each.name),
                                             each.beside.empty() ? "" : each.beside + "_bytes_per_second",
                                             rate_of(each.beside.empty() ? each.name : each.beside));
        }
        progress.say(fmt::format("first calls, run {} of {}", run + 1, settings.runs));
        const Figures packed = measured(settings, scratch, "rove_bench_api", {}, {"first"});
        image.add(packed.at("first_ns"), "raw_cached_ns", f.at("raw_ns"));
        very_first.add(packed.at("very_first_ns"), "raw_cached_ns", f.at("raw_ns"));
        bitcode.add(measured(settings, scratch, "rove_bench_api_bitcode", {}, {"first"}).at("first_ns"),
                    "raw_cached_ns", f.at("raw_ns"));
    }
    const auto add = [&report](Row row, const auto& fill) {
        fill(row);
        report.rows.push_back(std::move(row));
    };
    const std::string& fabric = settings.fabric;
    add(sync.row("sync", "add", 8, fabric), [&](Row& row) { row.one_way_ns = one_way(sync.middle() * 2); });
    add(empty.row("sync", "empty", 0, fabric), [&](Row& row) { row.one_way_ns = one_way(empty.middle() * 2); });
    add(rate.row("async, 64 in flight", "add", 8, fabric), [&](Row& row) { row.per_second = rate.middle(); });
    add(put.row("put", "", 1 << 20U, fabric), [&](Row& row) { row.bytes_per_second = put.middle(); });
    add(get.row("get", "", 1 << 20U, fabric), [&](Row& row) { row.bytes_per_second = get.middle(); });
    for (const std::size_t mib : kLargeMib)
        for (const Large& each : large_rows()) {
            const Column& column = larges[{each.name, mib}];
            add(column.row(each.what, each.function, mib << 20U, fabric),
                [&](Row& row) { row.bytes_per_second = column.middle(); });
        }
    add(image.row("first call, image", "lambda", 4, fabric),
        [&](Row& row) { row.one_way_ns = one_way(image.middle() * 2); });
    add(very_first.row("a program's and its node's very first call", "lambda", 4, fabric),
        [&](Row& row) { row.one_way_ns = one_way(very_first.middle() * 2); });
    add(bitcode.row("first call, taken out on the spot", "lambda", 4, fabric),
        [&](Row& row) { row.one_way_ns = one_way(bitcode.middle() * 2); });
    report.notes.push_back("sync: half of a round trip, command_ns too; first calls: all of it.");
}

}  // namespace rove::bench
