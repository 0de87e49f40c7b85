// `rove bench engines`: what a node with several engines does with short functions of several peers, and what one client loses by it.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "bench/machine.hpp"
#include "bench/runs.hpp"
#include "bench/session.hpp"
#include "bench/shapes.hpp"
#include "bench/sides.hpp"
#include "bench/usage.hpp"
#include "rove/node.hpp"

namespace rove::bench {
namespace {

using std::chrono::milliseconds;

constexpr double kFunctionNs = 5000;
constexpr unsigned kPostsInBatch = 64, kClients = 64;
// Each call of `relay` sends so many posts, which fit into a mailbox; and how many calls a run has.
constexpr std::uint32_t kRelayed = 32;
constexpr unsigned kRelays = 200;

double own_cpu_seconds() {
    rusage used{};
    (void)getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// A node with so many engines, on both cores as the kernel has it, and clients of it, whose links are spread over the engines.
class SharedNode {
public:
    SharedNode(const Settings& settings, unsigned engines) {
        pin_to(kAnyCore);
        const std::string cookie = scratch_.path() / "cookie";
        node_ = start_node(settings.rove, cookie, kAnyCore,
                           {"--fabric", settings.fabric, "--engines", std::to_string(engines)});
        for (unsigned i = 0; i < kClients; ++i) {
            NodeOptions options;
            options.fabric = fabric_of(settings);
            options.own_thread = false;
            options.waiting = Waiting::frugal;  // a client that waits leaves its core to the node
            options.cookie = cookie;
            clients_.push_back(std::make_unique<Node>(options));
            peers_.push_back(clients_.back()->connect(node_.address));
        }
        spin_ = Package::open(settings.packages / "spin.rove").entry("spin");
        for (const Peer& peer : peers_)
            for (int i = 0; i < 100; ++i) (void)call(peer, 0);
        std::this_thread::sleep_for(milliseconds(settings.quick ? 50 : 500));  // the bitcode tier is there by then
    }

    // How far the function counts in kFunctionNs.
    [[nodiscard]] std::uint64_t steps() {
        constexpr std::uint64_t kMany = 1'000'000;
        double best = 1e18;
        for (int i = 0; i < 20; ++i) {
            const std::uint64_t begin = ticks();
            (void)call(peers_[0], kMany);
            best = std::min(best, us_since(begin) * 1e3);
        }
        return static_cast<std::uint64_t>(kMany * kFunctionNs / best);
    }
    // Seconds until that many batches of each client have run, and the share of a core that the clients took.
    struct Took {
        double seconds, clients_share;
    };
    [[nodiscard]] Took work(unsigned batches, std::uint64_t steps) {
        const std::uint64_t before = call(peers_[0], 0);
        const double cpu = own_cpu_seconds();
        const std::uint64_t begin = ticks();
        for (unsigned i = 0; i < batches; ++i)
            for (const Peer& peer : peers_) {
                Batch batch = peer.batch(*spin_, sizeof steps);
                for (unsigned post = 0; post < kPostsInBatch; ++post)
                    std::memcpy(batch.add().data(), &steps, sizeof steps);
                batch.post();
            }
        std::vector<RawCall> last;
        const std::uint64_t none = 0;
        for (const Peer& peer : peers_) last.push_back(peer.call(*spin_, std::as_bytes(std::span(&none, 1))));
        for (RawCall& each : last) (void)each.get();
        wait_for(before + 1 + std::uint64_t{batches} * kClients * kPostsInBatch + kClients);
        const double seconds = us_since(begin) * 1e-6;
        return {seconds, (own_cpu_seconds() - cpu) / seconds};
    }

private:
    // Waits until so many calls have ended. Those of one peer start in order, but one whose thread the kernel interrupts may end after later ones.
    void wait_for(std::uint64_t expected) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        for (std::uint64_t ended = call(peers_[0], 0); ended < expected; ended = call(peers_[0], 0)) {
            ++expected;  // that call itself
            if (std::chrono::steady_clock::now() > until)
                throw Error(ErrorCode::internal, fmt::format("{} of {} functions have ended", ended, expected));
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
    }
    std::uint64_t call(const Peer& peer, std::uint64_t steps) {
        std::uint64_t before = 0;
        (void)peer.call(*spin_, std::as_bytes(std::span(&steps, 1)))
            .get_into(std::as_writable_bytes(std::span(&before, 1)));
        return before;
    }

    Scratch scratch_;
    StartedNode node_;
    std::vector<std::unique_ptr<Node>> clients_;
    std::vector<Peer> peers_;
    std::optional<Entry> spin_;
};

void add_short_functions(const Settings& settings, unsigned engines, Report& report, Progress& progress) {
    SharedNode one(settings, 1), several(settings, engines);
    const std::uint64_t steps = one.steps();
    const unsigned batches = settings.quick ? 1 : 25;
    Runs rates, shares;
    for (unsigned run = 0; run < settings.runs; ++run) {
        progress.say(
            fmt::format("engines: 1 and {}, functions of 5 us, run {} of {}", engines, run + 1, settings.runs));
        const auto posts = static_cast<double>(batches * kClients * kPostsInBatch);
        // In turns: whichever is first has the machine as the last run has left it.
        SharedNode::Took alone{}, together{};
        if (run % 2 == 0) alone = one.work(batches, steps);
        together = several.work(batches, steps);
        if (run % 2 != 0) alone = one.work(batches, steps);
        rates.add(posts / together.seconds);
        rates.against("one_engine_per_second", posts / alone.seconds);
        shares.add(together.clients_share);
    }
    Row row{.what = "engines",
            .mode = fmt::format("{} engines: functions of 5 us, in batches of {} clients", engines, kClients),
            .function = "spin",
            .size = 8,
            .fabric = settings.fabric};
    row.per_second = rates.middle();
    row.clients_share = shares.middle();
    rates.tell(row);
    report.rows.push_back(row);
}

// What takes `all` with several engines, run by run, and one_engine_ns with one.
void add_times(const Settings& settings, const std::string& mode, const std::vector<OneWay>& all, const Runs& runs,
               Report& report) {
    Row row{.what = "engines", .mode = mode, .function = "increment", .size = 8, .fabric = settings.fabric};
    row.one_way_ns = middle_of(all);
    runs.tell(row);
    report.rows.push_back(row);
}

// One client: both nodes on the same core, in turns.
void add_one_client(const Settings& settings, unsigned engines, Report& report, Progress& progress) {
    const Session alone(settings, {.flags = {"--engines", "1"}});
    const Session several(settings, {.flags = {"--engines", std::to_string(engines)}});
    Sender of_one(alone, "cached", "increment", 8), of_several(several, "cached", "increment", 8);
    std::vector<OneWay> all;
    Runs runs;
    const std::size_t samples = settings.quick ? 1'000 : settings.fabric == "tcp" ? 20'000 : 200'000;
    for (unsigned run = 0; run < settings.runs; ++run) {
        progress.say(fmt::format("engines: 1 and {}, one client, run {} of {}", engines, run + 1, settings.runs));
        const double theirs = ping_pong(of_one, samples).p50;
        all.push_back(ping_pong(of_several, samples));
        runs.add(all.back().p50);
        runs.against("one_engine_ns", theirs);
    }
    add_times(settings, fmt::format("{} engines: one client, cached", engines), all, runs, report);
}

// A node with so many engines, two members that have joined it, and a client whose function posts to these. The links to the members are on
// different engines where there are several, so at least one of them is not on the function's own.
class Relays {
public:
    Relays(const Settings& settings, unsigned engines) {
        const std::string cookie = scratch_.path() / "cookie";
        const auto node = [&](std::vector<std::string> flags) {
            flags.insert(flags.end(), {"--fabric", settings.fabric, "--waiting", "frugal"});
            return start_node(settings.rove, cookie, kAnyCore, flags);
        };
        node_ = node({"--engines", std::to_string(engines)});
        for (StartedNode& member : members_) member = node({"--join", node_.address});
        NodeOptions options;
        options.fabric = fabric_of(settings);
        options.own_thread = false;
        options.cookie = cookie;
        client_ = std::make_unique<Node>(options);
        peer_ = client_->connect(node_.address);
        (void)peer_->load(Package::open(settings.packages / "increment.rove"));
        relay_ = Package::open(settings.packages / "relay.rove").entry("relay");
        for (NodeId member = 1; member <= kMembers; ++member)
            for (int i = 0; i < 20; ++i) (void)post_to(member);
    }

    // ns of a post to the member for which it takes longest.
    [[nodiscard]] std::vector<double> slowest() {
        std::vector<double> slowest;
        for (NodeId member = 1; member <= kMembers; ++member) {
            std::vector<double> ns;
            for (unsigned i = 0; i < kRelays; ++i) ns.push_back(post_to(member));
            if (slowest.empty() || median(ns) > median(slowest)) slowest = std::move(ns);
        }
        return slowest;
    }

private:
    static constexpr NodeId kMembers = 2;

    double post_to(NodeId member) {
        const std::uint32_t posts[] = {member, kRelayed};
        std::uint64_t took = 0;
        (void)peer_->call(*relay_, std::as_bytes(std::span(posts)))
            .get_into(std::as_writable_bytes(std::span(&took, 1)));
        return static_cast<double>(took) / kRelayed;
    }

    Scratch scratch_;
    StartedNode node_, members_[kMembers];
    std::unique_ptr<Node> client_;
    std::optional<Peer> peer_;
    std::optional<Entry> relay_;
};

void add_posts_between(const Settings& settings, unsigned engines, Report& report, Progress& progress) {
    Relays one(settings, 1), several(settings, engines);
    std::vector<OneWay> all;
    Runs runs;
    for (unsigned run = 0; run < settings.runs; ++run) {
        progress.say(
            fmt::format("engines: 1 and {}, posts to their peers, run {} of {}", engines, run + 1, settings.runs));
        const double theirs = median(one.slowest());
        all.push_back(summary(several.slowest()));
        runs.add(all.back().p50);
        runs.against("one_engine_ns", theirs);
    }
    add_times(settings, fmt::format("{} engines: a function's post to another one's peer", engines), all, runs, report);
}

}  // namespace

void measure_engines(const Settings& settings, Report& report, Progress& progress) {
    for (const unsigned engines : settings.engines) {
        add_short_functions(settings, engines, report, progress);
        add_one_client(settings, engines, report, progress);
        add_posts_between(settings, engines, report, progress);
    }
}

}  // namespace rove::bench
