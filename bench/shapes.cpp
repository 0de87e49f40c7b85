#include "bench/shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "bench/against_command.hpp"
#include "bench/machine.hpp"
#include "bench/runs.hpp"
#include "bench/session.hpp"
#include "bench/sides.hpp"
#include "bench/ucx_perftest.hpp"
#include "bench/usage.hpp"
#include "bench/yardsticks.hpp"
#include "code/cache.hpp"
#include "rove/node.hpp"
#include "toolchain/build.hpp"

namespace rove::bench {
namespace {

using std::chrono::milliseconds;

void measure_ucx(const Settings& settings, const Session& session, const std::string& test, std::size_t size,
                 const std::function<void(const PerftestResult&)>& use, Report& report) {
    std::string why;
    const unsigned long iterations = settings.quick ? 2'000 : settings.fabric == "tcp" ? 20'000 : 200'000;
    if (const auto result = run_perftest(session.cores(), test, settings.fabric, size, iterations, why))
        use(*result);
    else if (std::find(report.notes.begin(), report.notes.end(), why) == report.notes.end())
        report.notes.push_back(why);
}

std::vector<std::size_t> sizes_or(const Settings& settings, std::vector<std::size_t> others) {
    if (settings.sizes.empty()) return others;
    return settings.sizes;
}

// Seconds until `frames` posts have been made and run.
double posts_seconds(Sender& sender, std::uint64_t frames) {
    const std::uint64_t begin = ticks();
    for (std::uint64_t i = 0; i < frames; ++i) sender.post();
    sender.call();  // calls of one peer start in their order: all posts are done
    return static_cast<double>(ticks() - begin) * ns_per_tick() * 1e-9;
}

double batch_seconds(const Session& session, Sender& sender, std::uint64_t posts) {
    const std::uint64_t begin = ticks();
    Batch batch = session.peer().batch(sender.entry(), sender.size());
    const std::uint64_t one = 1;
    for (std::uint64_t i = 0; i < posts; ++i) std::memcpy(batch.add().data(), &one, sizeof one);
    batch.post();
    sender.call();
    return static_cast<double>(ticks() - begin) * ns_per_tick() * 1e-9;
}

// What the node's counter says: that as many functions have run as were posted.
class Proof {
public:
    Proof(const Session& session, const std::string& mode, const std::string& function)
        : peer_(session.peer()),
          function_(mode == "deliver" ? "" : function),
          entry_(session.package("sum").entry("sums")),
          increment_(session.package("increment").entry("increment")) {}

    void expect(std::uint64_t more) {
        const bool counts = before_ >= 0 && function_ != "indirect_put" && !function_.empty();
        const std::int64_t wanted = before_ + static_cast<std::int64_t>(more);
        std::int64_t now = read();
        // Calls start in order. Where one was interrupted, another thread of the node has gone on with the next ones.
        for (const auto give_up = std::chrono::steady_clock::now() + kSoon;
             counts && now < wanted && std::chrono::steady_clock::now() < give_up;)
            now = read();
        if (counts && now != wanted)
            throw Error(ErrorCode::internal, fmt::format("{} of {} functions have run", now - before_, more));
        before_ = now;
    }

private:
    [[nodiscard]] std::int64_t read() const {
        std::int64_t told[2] = {0, 0};
        const auto bytes = std::as_writable_bytes(std::span(told));
        const std::int64_t nothing = 0;
        if (function_ == "sum") (void)peer_.call(entry_).get_into(bytes);
        if (function_ == "increment")
            (void)peer_.call(increment_, std::as_bytes(std::span(&nothing, 1))).get_into(bytes);
        return told[0];
    }

    static constexpr auto kSoon = std::chrono::seconds(1);
    const Peer& peer_;
    std::string function_;
    Entry entry_, increment_;
    std::int64_t before_ = -1;
};

struct Flood {
    const char* what;
    bool batches;
    std::uint64_t posts;
};

void flood(const Settings& settings, const Flood& flood, std::size_t size, const std::string& mode, Report& report,
           Progress& progress) {
    const Session session(settings, {.preload = mode == "resident"});
    Sender sender(session, mode, settings.function, size);
    Proof proof(session, mode, settings.function);
    const RingWork work = settings.function == "sum" ? RingWork::sum : RingWork::increment;
    Runs runs;
    for (unsigned run = 0; run < settings.runs; ++run) {
        progress.say(fmt::format("{} {} {} {} bytes: run {} of {}", flood.what, mode, settings.function, size, run + 1,
                                 settings.runs));
        const std::optional<double> command = command_figure(settings, kRateKey, sender.size());
        const double ring = raw_ring_per_second(session.cores(), work, sender.size(), flood.posts);
        proof.expect(0);
        const double seconds =
            flood.batches ? batch_seconds(session, sender, flood.posts) : posts_seconds(sender, flood.posts);
        proof.expect(flood.posts + 1);
        runs.add(static_cast<double>(flood.posts) / seconds);
        runs.against("raw_ring_per_second", ring);
        if (command) runs.against("command_per_second", *command);
        if (!settings.against_ucx) continue;
        measure_ucx(
            settings, session, "ucp_am_bw", size,
            [&](const PerftestResult& ucx) { runs.against("ucp_am_bw_per_second", ucx.per_second); }, report);
        if (settings.fabric == "shm")
            measure_ucx(
                settings, session, "ucp_put_bw", size,
                [&](const PerftestResult& ucx) { runs.against("ucp_put_bw_per_second", ucx.per_second); }, report);
    }
    Row row{.what = flood.what,
            .mode = flood.batches ? mode + ", batch" : mode,
            .function = settings.function,
            .size = sender.size(),
            .fabric = settings.fabric};
    row.per_second = runs.middle();
    row.bytes_per_second = runs.middle() * static_cast<double>(sender.size());
    row.frame_bytes = sender.frame_bytes();
    runs.tell(row);
    report.rows.push_back(row);
}

double timed_call(const Peer& peer, const Entry& entry) {
    std::byte reply[64];
    const std::int64_t number = 1;
    const std::uint64_t begin = ticks();
    (void)peer.call(entry, std::as_bytes(std::span(&number, 1))).get_into(reply);
    return us_since(begin) * 1000;
}

}  // namespace

void measure_latency(const Settings& settings, Report& report, Progress& progress) {
    Process stress;
    if (settings.stress) {
        Result<Process> started = start_side({"stress-ng", "--vm", "2", "--vm-bytes", "256M", "--quiet"}, kAnyCore);
        if (!started && started.error().code() == ErrorCode::unsupported) {
            report.notes.emplace_back("no latency under load: stress-ng is in the Debian package of that name");
            return;
        }
        stress = value_or_throw(std::move(started));
    }
    for (const std::size_t size : sizes_or(settings, {32}))
        for (const std::string& mode : settings.modes) {
            const Session session(settings, {.preload = mode == "resident"});
            Sender sender(session, mode, settings.function, size);
            const std::size_t samples = settings.quick ? 2'000 : settings.fabric == "tcp" ? 20'000 : 200'000;
            Runs runs;
            std::vector<OneWay> all;
            for (unsigned run = 0; run < settings.runs; ++run) {
                progress.say(fmt::format("latency {} {} {} bytes: run {} of {}", mode, settings.function, size, run + 1,
                                         settings.runs));
                const std::optional<double> command = command_figure(settings, kMedianKey, sender.size());
                const double line = cache_line_ns(session.cores());
                all.push_back(ping_pong(sender, samples));
                runs.add(all.back().p50);
                runs.against("cache_line_ns", line);
                if (command) runs.against("command_ns", *command);
                if (!settings.against_ucx) continue;
                for (const char* test : {"ucp_put_lat", "ucp_am_lat"})
                    if (settings.fabric == "shm" || test == std::string("ucp_am_lat"))
                        measure_ucx(
                            settings, session, test, sender.size(),
                            [&](const PerftestResult& ucx) { runs.against(std::string(test) + "_ns", ucx.typical_ns); },
                            report);
            }
            Row row{.what = settings.stress ? "latency, stress-ng --vm 2" : "latency",
                    .mode = mode,
                    .function = settings.function,
                    .size = sender.size(),
                    .fabric = settings.fabric};
            row.one_way_ns = middle_of(all);
            row.frame_bytes = sender.frame_bytes();
            runs.tell(row);
            report.rows.push_back(row);
        }
}

void measure_rate(const Settings& settings, Report& report, Progress& progress) {
    for (const std::size_t size : sizes_or(settings, {8, 32}))
        for (const std::string& mode : settings.modes) {
            const std::uint64_t posts = settings.quick ? 20'000 : settings.fabric == "tcp" ? 500'000 : 2'000'000;
            flood(settings, {"rate", false, posts}, size, mode, report, progress);
            if (mode == "cached") flood(settings, {"rate", true, posts}, size, mode, report, progress);
        }
}

void measure_bandwidth(const Settings& settings, Report& report, Progress& progress) {
    for (const std::size_t size : sizes_or(settings, {4096, 65536}))
        for (const std::string& mode : settings.modes) {
            const std::uint64_t bytes = settings.quick             ? 16'000'000
                                        : settings.fabric == "tcp" ? 400'000'000
                                                                   : 4'000'000'000;
            flood(settings, {"bandwidth", false, std::max<std::uint64_t>(bytes / size, 10)}, size, mode, report,
                  progress);
        }
}

namespace {

// What single calls took, ns.
struct FirstCalls {
    std::vector<double> first, second_function, cached;

    void add(const FirstCalls& others) {
        for (auto of : {&FirstCalls::first, &FirstCalls::second_function, &FirstCalls::cached})
            (this->*of).insert((this->*of).end(), (others.*of).begin(), (others.*of).end());
    }
    // Each of these calls, over a cached one.
    [[nodiscard]] std::vector<double> over_cached(std::vector<double> FirstCalls::* of) const {
        std::vector<double> ns = this->*of;
        for (double& each : ns) each -= median(cached);
        return ns;
    }
};

struct ArrivingPackages {
    std::vector<Package> increments, sums;
};

ArrivingPackages build_arriving(const Settings& settings, const Scratch& scratch, unsigned count, Progress& progress) {
    const auto build = [&](const std::string& source, unsigned number) {
        progress.say(fmt::format("arrival: building package {} {} of {}", source, number + 1, count));
        toolchain::BuildOptions options{.source = settings.sources / source / (source + ".c"),
                                        .output = scratch.path() / fmt::format("{}_{}.rove", source, number),
                                        .name = fmt::format("{}_{}", source, number)};
        options.targets = {std::string(code::host_triple())};
        if (const Status done = toolchain::build(options); !done) throw Error(done.error());
        return Package::open(options.output);
    };
    ArrivingPackages built;
    for (unsigned i = 0; i < count; ++i) {
        built.increments.push_back(build("increment", i));
        built.sums.push_back(build("sum", i));
    }
    return built;
}

// With every `step`th package, from `begin`.
FirstCalls call_first(const Peer& peer, const ArrivingPackages& packages, unsigned begin, unsigned step) {
    for (int i = 0; i < 1000; ++i)
        (void)peer.ping().get();  // the node is awake: the shape wake measures what waking costs
    FirstCalls ns;
    for (unsigned i = begin; i < packages.sums.size(); i += step) {
        const Entry increment = packages.increments[i].entry("increment");
        ns.first.push_back(timed_call(peer, increment));
        for (int repeat = 0; repeat < 200; ++repeat) ns.cached.push_back(timed_call(peer, increment));
        (void)timed_call(peer, packages.sums[i].entry("sum"));
        ns.second_function.push_back(timed_call(peer, packages.sums[i].entry("sums")));
    }
    return ns;
}

}  // namespace

// The first call of a function that the node has never seen, over one that is cached; and the first call of another function
// of a package that it has.
void measure_arrival(const Settings& settings, Report& report, Progress& progress) {
    // The packages of one round cannot be sent for the first time in another.
    const unsigned rounds = settings.against_command.empty() ? 1 : settings.runs;
    const Scratch scratch;
    const ArrivingPackages packages =
        build_arriving(settings, scratch, std::max(settings.quick ? 2U : 20U, rounds), progress);
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        const Session session(settings, {.forms = form});
        std::this_thread::sleep_for(milliseconds(500));  // the node opens its compiler when it starts
        FirstCalls all;
        Runs runs;
        for (unsigned round = 0; round < rounds; ++round) {
            const std::optional<double> command = command_figure(settings, kFirstCallKey, 8);
            const FirstCalls ns = call_first(session.peer(), packages, round, rounds);
            runs.add(median(ns.over_cached(&FirstCalls::first)));
            if (command) runs.against("command_ns", *command);
            all.add(ns);
        }
        const auto add = [&](const std::string& what, const std::string& function, std::vector<double> ns) -> Row& {
            const std::string name = form == Forms::image ? "image: " : "bitcode: ";
            report.rows.push_back({.what = "arrival",
                                   .mode = name + what,
                                   .function = function,
                                   .size = 8,
                                   .fabric = settings.fabric,
                                   .one_way_ns = summary(std::move(ns))});
            return report.rows.back();
        };
        add("round trip, cached", "increment", all.cached);
        runs.tell(add("first call, over that", "increment", all.over_cached(&FirstCalls::first)));
        add("second function of a package, over that", "sum", all.over_cached(&FirstCalls::second_function));
    }
}

namespace {

// `pairs` of a node and a client, all on the two cores as the kernel has it: calls per second of all of them together, 64 in
// flight from each client.
double crowd_per_second(const Settings& settings, unsigned pairs) {
    const Scratch scratch;
    const std::string cookie = scratch.path() / "cookie";
    std::vector<Process> nodes;
    std::vector<std::string> addresses;
    for (unsigned i = 0; i < pairs; ++i) {
        StartedNode node = start_node(settings.rove, cookie, kAnyCore, {"--fabric", settings.fabric});
        nodes.push_back(std::move(node.process));
        addresses.push_back(std::move(node.address));
    }
    const Entry increment = Package::open(settings.packages / "increment.rove").entry("increment");
    std::atomic<std::uint64_t> calls = 0;
    std::atomic<bool> counting = false, stop = false;
    std::vector<std::thread> clients;
    for (const std::string& address : addresses)
        clients.emplace_back([&, address] {
            pin_to(kAnyCore);
            NodeOptions options;
            options.own_thread = false;
            options.cookie = cookie;
            options.fabric = fabric_of(settings);
            Node client(options);
            const Peer peer = client.connect(address);
            std::byte reply[8];
            while (!stop) {
                std::vector<RawCall> window;
                window.reserve(64);
                for (int i = 0; i < 64; ++i) window.push_back(peer.call(increment));
                for (RawCall& call : window) (void)call.get_into(reply);
                if (counting) calls += window.size();
            }
        });
    std::this_thread::sleep_for(milliseconds(settings.quick ? 100 : 700));  // the bitcode tier is there by then
    counting = true;
    const std::uint64_t begin = ticks();
    std::this_thread::sleep_for(milliseconds(settings.quick ? 100 : 1000));
    const double seconds = us_since(begin) * 1e-6;
    const double counted = static_cast<double>(calls);
    stop = true;
    for (std::thread& client : clients) client.join();
    return counted / seconds;
}

}  // namespace

void measure_crowd(const Settings& settings, Report& report, Progress& progress) {
    Runs runs;
    for (unsigned run = 0; run < settings.runs; ++run) {
        progress.say(fmt::format("crowd: run {} of {}", run + 1, settings.runs));
        const double two = crowd_per_second(settings, 1);
        runs.add(crowd_per_second(settings, 4));
        runs.against("two_nodes_per_second", two);
    }
    Row row{.what = "crowd",
            .mode = "8 nodes, calls with replies, 64 in flight each",
            .function = "increment",
            .size = 0,
            .fabric = settings.fabric};
    row.per_second = runs.middle();
    runs.tell(row);
    report.rows.push_back(row);
}

void measure_wake(const Settings& settings, Report& report, Progress& progress) {
    const auto add = [&](const std::string& mode) -> Row& {
        report.rows.push_back(
            Row{.what = "wake", .mode = mode, .function = "increment", .size = 8, .fabric = settings.fabric});
        return report.rows.back();
    };
    for (const char* waiting : {"balanced", "latency"}) {
        const Session session(settings, {.flags = {"--waiting", waiting}});
        Sender sender(session, "cached", "increment", 8);
        progress.say(fmt::format("wake: a node that waits, {}", waiting));
        std::this_thread::sleep_for(milliseconds(300));
        const Activity activity(session.node_pid());
        std::this_thread::sleep_for(milliseconds(settings.quick ? 200 : 3000));
        add(std::string(waiting) + ", nothing arrives").core_share = activity.core_share();
        if (waiting == std::string("latency")) continue;
        const double usual = ping_pong(sender, 2000).p50 * 2;
        std::vector<double> all;
        Runs runs;
        for (unsigned run = 0; run < settings.runs; ++run) {
            std::vector<double> wakes;
            for (int i = 0; i < (settings.quick ? 5 : 50); ++i) {
                std::this_thread::sleep_for(milliseconds(10));
                const std::uint64_t begin = ticks();
                sender.call();
                wakes.push_back(us_since(begin) * 1000 - usual);
            }
            all.insert(all.end(), wakes.begin(), wakes.end());
            runs.add(median(wakes));
            runs.against("kernel_wake_ns", kernel_wake_ns(session.cores(), settings.quick ? 5 : 50));
        }
        Row& row = add("call to a sleeping node, over a cached one");
        row.one_way_ns = summary(std::move(all));
        runs.tell(row);
    }
}

}  // namespace rove::bench
