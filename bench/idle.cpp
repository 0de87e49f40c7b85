// `rove bench idle`: what peers cost that have met a node and do nothing. One client is active beside them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/descriptor_limit.hpp"
#include "bench/idle_peers.hpp"
#include "bench/machine.hpp"
#include "bench/runs.hpp"
#include "bench/session.hpp"
#include "bench/shapes.hpp"
#include "bench/usage.hpp"

namespace rove::bench {
namespace {

using std::chrono::milliseconds;

Row& add_row(const Settings& settings, std::size_t peers, const std::string& mode, Report& report) {
    report.rows.push_back(Row{.what = "idle",
                              .mode = fmt::format("{} idle: {}", peers, mode),
                              .function = "increment",
                              .size = 8,
                              .fabric = settings.fabric,
                              .peers = peers});
    return report.rows.back();
}

// A node that a number of idle peers is going to meet, its active client, and where the figures go.
class Beside {
public:
    Beside(const Settings& settings, std::size_t peers, Report& report)
        : settings_(settings), peers_(peers), report_(report) {}

    [[nodiscard]] const Session& session() const { return session_; }
    [[nodiscard]] OneWay round_trip() {
        OneWay ns = ping_pong(sender_, settings_.quick ? 500 : settings_.fabric == "tcp" ? 20'000 : 200'000);
        for (double OneWay::* each : {&OneWay::min, &OneWay::p50, &OneWay::p99, &OneWay::p999}) ns.*each *= 2;
        return ns;
    }
    Row& add(const std::string& mode) { return add_row(settings_, peers_, mode, report_); }
    void add_nothing_arrives() {
        // For the first second after a call it does not count as idle.
        if (!settings_.quick) std::this_thread::sleep_for(milliseconds(2000));
        const Activity activity(session_.node_pid());
        std::this_thread::sleep_for(milliseconds(settings_.quick ? 200 : 3000));
        Row& row = add("node, nothing arrives");
        row.core_share = activity.core_share();
        row.wakes_per_second = activity.wakes_per_second();
    }

private:
    const Settings& settings_;
    std::size_t peers_;
    Report& report_;
    Session session_{settings_, {}};
    Sender sender_{session_, "cached", "increment", 8};
};

void add_round_trips(const Settings& settings, Beside& alone, Beside& beside) {
    std::vector<OneWay> all;
    Runs medians, tails;
    for (unsigned run = 0; run < settings.runs; ++run) {
        const OneWay theirs = alone.round_trip();
        all.push_back(beside.round_trip());
        medians.add(all.back().p50);
        medians.against("none_idle_ns", theirs.p50);
        tails.add(all.back().p99);
        tails.against("none_idle_p99_ns", theirs.p99);
    }
    Row& row = beside.add("round trip, cached");
    row.one_way_ns = middle_of(all);
    medians.tell(row);
    tails.tell(row);
}

void add_alone(const Settings& settings, Beside& alone) {
    alone.add_nothing_arrives();
    std::vector<OneWay> all;
    for (unsigned run = 0; run < settings.runs; ++run) all.push_back(alone.round_trip());
    alone.add("round trip, cached").one_way_ns = middle_of(all);
}

// `ours` beside `theirs`, whose median is called `name`.
void add_compared(Row& row, const std::vector<double>& ours, const std::string& name,
                  const std::vector<double>& theirs) {
    Runs run;
    row.one_way_ns = summary(ours);
    run.add(row.one_way_ns->p50);
    run.against(name, median(theirs));
    run.tell(row);
}

void add_meetings(Beside& beside, const std::vector<double>& ns) {
    const auto tenth = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, ns.size() / 10));
    const std::vector<double> first(ns.begin(), ns.begin() + tenth), last(ns.end() - tenth, ns.end());
    beside.add("meeting, first tenth").one_way_ns = summary(first);
    add_compared(beside.add("meeting, last tenth"), last, "first_tenth_ns", first);
}

void add_meetings_together(const Settings& settings, std::size_t peers, Report& report) {
    const Session session(settings, {});
    IdlePeers idle(settings, session, peers);
    const double seconds = idle.meet_together();
    Row& row = add_row(settings, peers, fmt::format("meetings, {} at once", idle.together()), report);
    row.seconds = seconds;
    row.per_second = static_cast<double>(peers) / seconds;
}

struct BothEnds {
    Footprint node, peers;
};

void add_footprints(Beside& beside, std::size_t peers, const BothEnds& before, const BothEnds& after) {
    const auto each = [peers](double later, double earlier) { return (later - earlier) / static_cast<double>(peers); };
    const auto add = [&](const std::string& end, const Footprint& later, const Footprint& earlier) {
        Row& row = beside.add("each peer, " + end);
        row.bytes_per_peer = each(later.resident_bytes, earlier.resident_bytes);
        row.descriptors_per_peer = each(later.descriptors, earlier.descriptors);
    };
    add("at the node", after.node, before.node);
    add("at the clients", after.peers, before.peers);
    beside.add("each peer, at both ends, shared pages once").bytes_per_peer =
        each((after.node + after.peers).proportional_bytes, (before.node + before.peers).proportional_bytes);
}

void measure_beside(const Settings& settings, std::size_t peers, Beside& alone, Report& report, Progress& progress) {
    const auto say = [&](const char* what) {
        progress.say(fmt::format("idle {}: {} peers, {}", settings.fabric, peers, what));
    };
    Beside beside(settings, peers, report);
    IdlePeers idle(settings, beside.session(), peers);
    const auto both_ends = [&] { return BothEnds{footprint_of(beside.session().node_pid()), idle.footprint()}; };
    const BothEnds before = both_ends();
    say("that meet the node one after the other");
    add_meetings(beside, idle.meet_one_by_one());
    idle.call_all();
    std::this_thread::sleep_for(milliseconds(settings.quiet_ms));
    add_footprints(beside, peers, before, both_ends());
    say("that do nothing");
    beside.add_nothing_arrives();
    say("and one that calls");
    add_round_trips(settings, alone, beside);
    if (const IdlePeers::FirstCalls calls = idle.first_calls(); !calls.first_ns.empty())
        add_compared(beside.add(fmt::format("first call after {} ms", settings.quiet_ms)), calls.first_ns,
                     "warm_call_ns", calls.warm_ns);
}

}  // namespace

void measure_idle(const Settings& settings, Report& report, Progress& progress) {
    allow_all_descriptors();
    (void)std::signal(SIGPIPE, [](int) {});  // a process of peers that is gone is found out where it is asked
    std::vector<std::size_t> counts = settings.peers;
    if (counts.empty())
        counts = settings.quick ? std::vector<std::size_t>{0, 8} : std::vector<std::size_t>{0, 100, 300};
    Beside alone(settings, 0, report);
    for (const std::size_t peers : counts) {
        progress.say(fmt::format("idle {}: {} peers", settings.fabric, peers));
        if (peers == 0) {
            add_alone(settings, alone);
            continue;
        }
        measure_beside(settings, peers, alone, report, progress);
        progress.say(fmt::format("idle {}: {} peers, met together", settings.fabric, peers));
        add_meetings_together(settings, peers, report);
    }
}

}  // namespace rove::bench
