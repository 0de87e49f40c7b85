// `rove bench threads`: what threads of one program get that call one peer through one node object.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <numeric>
#include <span>
#include <thread>

#include "bench/machine.hpp"
#include "bench/runs.hpp"
#include "bench/session.hpp"
#include "bench/shapes.hpp"
#include "rove/error.hpp"
#include "rove/node.hpp"

namespace rove::bench {
namespace {

using std::chrono::milliseconds;

// Threads of this process that call, each as soon as its last call has returned. They begin when the object is made.
class Callers {
public:
    Callers(const Peer& peer, const Entry& increment, std::size_t count, int core) : counts_(count) {
        try {
            start(peer, increment, core);
        } catch (...) {  // no more threads: those that have begun are to end
            stop_ = true;
            throw;
        }
    }
    ~Callers() { stop_ = true; }  // the futures wait for their threads
    Callers(const Callers&) = delete;
    Callers& operator=(const Callers&) = delete;

    // How many calls of each have returned.
    [[nodiscard]] std::vector<double> calls() const {
        std::vector<double> calls;
        for (const Count& each : counts_) calls.push_back(static_cast<double>(each.calls));
        return calls;
    }
    void end() {
        stop_ = true;
        for (std::future<void>& each : threads_) each.get();
    }

private:
    struct alignas(64) Count {  // a line of its own: two threads that count do not wait for each other
        std::atomic<std::uint64_t> calls{0};
    };

    void start(const Peer& peer, const Entry& increment, int core) {
        for (Count& count_of_it : counts_)
            threads_.push_back(std::async(std::launch::async, [this, &peer, &increment, &count_of_it, core] {
                pin_to(core);
                call(peer, increment, count_of_it);
            }));
    }

    void call(const Peer& peer, const Entry& increment, Count& count) {
        Message message(increment, sizeof(std::int64_t));
        const std::int64_t one = 1;
        std::memcpy(message.payload().data(), &one, sizeof one);
        std::byte reply[64];
        std::uint64_t done = 0;
        while (!stop_) {
            (void)peer.call(message).get_into(reply);
            count.calls.store(++done, std::memory_order_relaxed);
        }
    }

    std::atomic<bool> stop_{false};
    std::vector<Count> counts_;
    std::vector<std::future<void>> threads_;
};

double sum_of(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

struct Window {
    double per_second = 0;       // calls of all threads
    double slowest_to_mean = 0;  // calls of the thread that made the fewest, by the mean
};

// One peer, and where the threads run that call it.
class Called {
public:
    Called(const Settings& settings, bool both_cores)
        : settings_(settings),
          session_(settings, {.own_thread = settings.own_thread, .both_cores = both_cores}),
          core_(both_cores ? kAnyCore : session_.cores().client) {}

    [[nodiscard]] Window by(std::size_t threads) {
        const double before = counter();
        Callers callers(session_.peer(), sender_.entry(), threads, core_);
        std::this_thread::sleep_for(milliseconds(settings_.quick ? 20 : 100));
        const std::vector<double> first = callers.calls();
        const std::uint64_t begin = ticks();
        std::this_thread::sleep_for(milliseconds(settings_.quick ? 50 : 500));
        std::vector<double> calls = callers.calls();
        const double seconds = us_since(begin) * 1e-6;
        callers.end();
        if (const double run = counter() - before, made = sum_of(callers.calls()); run != made)
            throw Error(ErrorCode::internal, fmt::format("{} functions have run in {} calls", run, made));
        std::ranges::transform(calls, first, calls.begin(), std::minus());
        const double all = sum_of(calls);
        return {all / seconds, std::ranges::min(calls) / (all / static_cast<double>(threads))};
    }

private:
    // How often the function has run on the node.
    [[nodiscard]] double counter() const {
        const std::int64_t nothing = 0;
        std::int64_t told[2] = {0, 0};
        (void)session_.peer()
            .call(sender_.entry(), std::as_bytes(std::span(&nothing, 1)))
            .get_into(std::as_writable_bytes(std::span(told)));
        return static_cast<double>(told[0]);
    }

    const Settings& settings_;
    Session session_;
    Sender sender_{session_, "cached", "increment", sizeof(std::int64_t)};
    int core_;
};

void measure_placed(const Settings& settings, const std::vector<std::size_t>& counts, bool both_cores, Report& report,
                    Progress& progress) {
    struct Column {
        Runs runs;
        std::vector<double> slowest_to_mean;
    };
    std::vector<Column> columns(counts.size());
    const std::string where = both_cores ? "both cores" : "one core";
    Called called(settings, both_cores);
    for (unsigned run = 0; run < settings.runs; ++run) {
        progress.say(fmt::format("threads on {}: run {} of {}", where, run + 1, settings.runs));
        const Window one = called.by(1);
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const Window window = counts[i] == 1 ? one : called.by(counts[i]);
            columns[i].runs.add(window.per_second);
            if (counts[i] > 1) columns[i].runs.against("one_thread_per_second", one.per_second);
            columns[i].slowest_to_mean.push_back(window.slowest_to_mean);
        }
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
        Row row{
            .what = "threads",
            .mode = fmt::format("{} on {}{}", counts[i], where, settings.own_thread ? ", node with own threads" : ""),
            .function = "increment",
            .size = sizeof(std::int64_t),
            .fabric = settings.fabric};
        row.threads = counts[i];
        row.per_second = columns[i].runs.middle();
        if (counts[i] > 1) row.slowest_to_mean = median(columns[i].slowest_to_mean);
        columns[i].runs.tell(row);
        report.rows.push_back(row);
    }
}

}  // namespace

void measure_threads(const Settings& settings, Report& report, Progress& progress) {
    const std::vector<std::size_t> counts =
        settings.threads.empty() ? std::vector<std::size_t>{1, 2, 4, 8} : settings.threads;
    for (const bool both_cores : {false, true}) measure_placed(settings, counts, both_cores, report, progress);
}

}  // namespace rove::bench
