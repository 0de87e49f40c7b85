// The program whose typed calls `rove bench api` measures: a program of its own, so that the node does not know its functions.
//   rove_bench_api steady ADDRESS INCREMENT.rove FABRIC MS    prints `NAME VALUE` lines: ns of a round trip, calls or bytes per second
//   rove_bench_api first ADDRESS            prints what the first calls of small lambdas take: the very first, and the median of others
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "rove/rove.hpp"

namespace {

using Clock = std::chrono::steady_clock;

int add(int a, int b) {
    return a + b;
}
void nothing() {}

// What large arguments and results are. The results are there already: what it takes to make them is the function's own.
std::size_t take_text(const std::string& text) {
    return text.size();
}
std::size_t take_values(const std::vector<double>& values) {
    return values.size();
}
std::size_t take_view(std::span<const double> values) {
    return values.size();
}
const std::string& give_text(std::size_t bytes) {
    static std::string kept;
    if (kept.size() != bytes) kept.assign(bytes, 'r');
    return kept;
}
const std::vector<double>& give_values(std::size_t count) {
    static std::vector<double> kept;
    if (kept.size() != count) kept.assign(count, 1.5);
    return kept;
}

double ns_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

// What a payload of that many MiB takes as each of these, beside put and get of as many bytes. Once each, in another order every time, so
// that all see the same machine.
void large(const rove::Peer& peer, std::size_t mib, double ms) {
    const std::size_t bytes = mib << 20U;
    const std::string text(bytes, 'a');
    const std::vector<double> values(bytes / sizeof(double), 0.5);
    std::vector<double> into(values.size());
    const auto buffer = peer.allocate<double>(values.size()).get();
    const auto check = [bytes](std::size_t got, std::size_t unit) {
        if (got * unit != bytes) std::abort();
    };
    struct Row {
        const char* name;
        std::function<void()> work;
        std::vector<double> samples{};
    };
    Row rows[] = {
        {"put", [&] { peer.put(values, buffer).get(); }},
        {"text_argument", [&] { check(peer.sync(rove::fn<take_text>, text), 1); }},
        {"values_argument", [&] { check(peer.sync(rove::fn<take_values>, values), sizeof(double)); }},
        {"view_argument", [&] { check(peer.sync(rove::fn<take_view>, values), sizeof(double)); }},
        {"get", [&] { peer.get(buffer, into).get(); }},
        {"text_result", [&] { check(peer.sync(rove::fn<give_text>, bytes).size(), 1); }},
        {"values_result", [&] { check(peer.sync(rove::fn<give_values>, values.size()).size(), sizeof(double)); }},
    };
    constexpr int kUnmeasured = 3;  // memory that is new costs a page fault for each of its pages
    int round = 0;
    std::minstd_rand random;  // what ran before decides what is in the caches
    for (const auto begin = Clock::now(); round < 2 * kUnmeasured || ns_since(begin) < ms * 1e6; ++round) {
        std::shuffle(std::begin(rows), std::end(rows), random);
        for (Row& row : rows) {
            for (int i = 0; i < 10; ++i)
                (void)peer.ping().get();  // it is awake: `rove bench wake` measures what waking costs
            const auto start = Clock::now();
            row.work();
            if (round >= kUnmeasured) row.samples.push_back(ns_since(start));
        }
    }
    for (Row& row : rows) std::printf("%s_%zu_ns %g\n", row.name, mib, median(std::move(row.samples)));
}

// The median over groups of ten, for a clock's own time would count.
template <typename Work>
double time_of(double ms, const Work& work) {
    constexpr int kGroup = 10;
    std::vector<double> samples;
    for (const auto begin = Clock::now(); ns_since(begin) < ms * 1e6;) {
        const auto start = Clock::now();
        for (int i = 0; i < kGroup; ++i) work();
        samples.push_back(ns_since(start) / kGroup);
    }
    return median(std::move(samples));
}

// `begin` begins a call, `end` ends one: 64 are in flight.
template <typename Begin, typename End>
double rate_of(double ms, const Begin& begin, const End& end) {
    constexpr std::size_t kInFlight = 64;
    std::vector<decltype(begin())> calls;
    for (std::size_t i = 0; i < kInFlight; ++i) calls.push_back(begin());
    std::size_t done = 0;
    const auto start = Clock::now();
    while (ns_since(start) < ms * 1e6) {
        for (std::size_t i = 0; i < kInFlight; ++i) {
            end(calls[i]);
            calls[i] = begin();
        }
        done += kInFlight;
    }
    const double rate = static_cast<double>(done) / ns_since(start) * 1e9;
    for (auto& call : calls) end(call);
    return rate;
}

void steady(const rove::Peer& peer, const char* package, double ms) {
    const rove::Entry increment = rove::Package::open(package).entry("increment");
    const std::uint64_t one = 1;
    const auto payload = std::as_bytes(std::span(&one, 1));
    std::byte reply[64];
    const auto raw = [&] { (void)peer.call(increment, payload).get_into(reply); };
    const auto typed = [&] { (void)peer.sync(rove::fn<add>, 1, 2); };
    const auto empty = [&] { peer.sync(rove::fn<nothing>); };
    for (int i = 0; i < 1000; ++i) raw(), typed(), empty();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until what follows the images has been compiled
    for (int i = 0; i < 1000; ++i) raw(), typed(), empty();
    // In turns, so that all see the same machine.
    std::vector<double> raws, typeds, empties, raw_rates, rates;
    for (int turn = 0; turn < 5; ++turn) {
        raws.push_back(time_of(ms / 5, raw));
        typeds.push_back(time_of(ms / 5, typed));
        empties.push_back(time_of(ms / 5, empty));
        raw_rates.push_back(rate_of(
            ms / 5, [&] { return peer.call(increment, payload); },
            [&](rove::RawCall& call) { (void)call.get_into(reply); }));
        rates.push_back(rate_of(
            ms / 5, [&] { return peer.async(rove::fn<add>, 1, 2); }, [](rove::Call<int>& call) { (void)call.get(); }));
    }
    std::printf("raw_ns %g\nsync_ns %g\nempty_ns %g\nraw_rate %g\nasync_rate %g\n", median(raws), median(typeds),
                median(empties), median(raw_rates), median(rates));

    constexpr std::size_t kBytes = 1 << 20U;
    std::vector<char> here(kBytes, 'a'), there(kBytes, 'b');
    const auto buffer = peer.allocate<char>(kBytes).get();
    const auto copied = [&] {
        std::memcpy(there.data(), here.data(), kBytes);
        __asm__ volatile("" : : "r"(there.data()) : "memory");
    };
    std::vector<double> copies, puts, gets;
    for (int turn = 0; turn < 5; ++turn) {
        copies.push_back(time_of(ms / 5, copied));
        puts.push_back(time_of(ms / 5, [&] { peer.put(here, buffer).get(); }));
        gets.push_back(time_of(ms / 5, [&] { peer.get(buffer, there).get(); }));
    }
    std::printf("memcpy_ns %g\nput_ns %g\nget_ns %g\n", median(copies), median(puts), median(gets));
    for (const std::size_t mib : {1, 4, 31}) large(peer, mib, ms);
}

// The time of a call, with the node awake (`rove bench wake` measures what waking costs) and nothing compiling.
template <typename F>
double time_of_first(const rove::Peer& peer, const F& function, int expected) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (int i = 0; i < 1000; ++i) (void)peer.ping().get();
    const auto begin = Clock::now();
    const int result = peer.sync(function, 4);
    const double ns = ns_since(begin);
    if (result != expected) std::abort();
    return ns;
}
template <int kNumber>
double time_of_lambda(const rove::Peer& peer, int limit) {
    return time_of_first(peer, [limit](int x) { return x * kNumber + limit; }, 4 * kNumber + limit);
}

void first(const rove::Peer& peer) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const double very_first_ns = time_of_lambda<0>(peer, 3);
    const double others_ns = [&]<int... kNumbers>(std::integer_sequence<int, kNumbers...>) {
        return median({time_of_lambda<kNumbers + 1>(peer, 3)...});
    }(std::make_integer_sequence<int, 15>{});
    std::printf("very_first_ns %g\nfirst_ns %g\n", very_first_ns, others_ns);
}

}  // namespace

int main(int count, char** arguments) try {
    rove::NodeOptions options;
    options.own_thread = false;
    if (count == 6 && !std::strcmp(arguments[1], "steady")) {
        options.fabric = !std::strcmp(arguments[4], "tcp") ? rove::FabricChoice::tcp : rove::FabricChoice::shm;
        rove::Node node(options);
        steady(node.connect(arguments[2]), arguments[3], std::atof(arguments[5]));
        return 0;
    }
    if (count == 3 && !std::strcmp(arguments[1], "first")) {
        rove::Node node(options);
        first(node.connect(arguments[2]));
        return 0;
    }
    return std::fprintf(stderr, "this is a part of `rove bench api`\n"), 2;
} catch (const rove::Error& error) {
    return std::fprintf(stderr, "rove_bench_api: %s\n", error.what()), 1;
}
