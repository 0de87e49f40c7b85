#include "bench/idle_peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <sstream>

#include "base/write_all.hpp"
#include "bench/machine.hpp"
#include "rove/error.hpp"

namespace rove::bench {
namespace {

constexpr std::size_t kProcessesMax = 8;

}  // namespace

PeersProcess::PeersProcess(const Settings& settings, const Session& session, std::size_t count) : count_(count) {
    const std::string program = settings.rove.parent_path() / kPeersProgram;
    const std::string package = settings.packages / "increment.rove";
    process_ = value_or_throw(start_side({program, session.address(), settings.fabric, package, std::to_string(count)},
                                         session.cores().client, {"ROVE_COOKIE=" + session.cookie()},
                                         scratch_.path() / "says", ProcessOptions::kPipe));
}

void PeersProcess::ask(const std::string& command) {
    const std::string line = command + "\n";
    if (!write_all(process_.in().number(), std::as_bytes(std::span(line)))) fail_as_it_says();
}

std::vector<double> PeersProcess::answer(std::size_t wanted) {
    std::istringstream line(process_.read_line());
    std::vector<double> numbers{std::istream_iterator<double>(line), {}};
    if (numbers.size() != wanted) fail_as_it_says();
    return numbers;
}

void PeersProcess::fail_as_it_says() {
    const int status = process_.kill();
    std::ifstream said(scratch_.path() / "says");
    throw Error(ErrorCode::failed, fmt::format("a process with {} idle peers ended with {}: {}", count_, status,
                                               std::string(std::istreambuf_iterator<char>(said), {})));
}

IdlePeers::IdlePeers(const Settings& settings, const Session& session, std::size_t count) {
    const std::size_t processes = std::clamp<std::size_t>(count / 2, 1, kProcessesMax);
    processes_.reserve(processes);
    for (std::size_t i = 0; i < processes; ++i)
        processes_.emplace_back(settings, session, (count + processes - 1 - i) / processes);
    for (PeersProcess& each : processes_) (void)each.answer(1);  // it has made its clients
}

std::vector<double> IdlePeers::meet_one_by_one() {
    std::vector<double> ns;
    for (std::size_t round = 0; round < processes_.front().count(); ++round)
        for (PeersProcess& each : processes_) {
            if (round == each.count()) continue;
            each.ask("meet 1");
            ns.push_back(each.answer(1).front());
        }
    return ns;
}

double IdlePeers::meet_together() {
    const std::uint64_t begin = ticks();
    for (PeersProcess& each : processes_) each.ask(fmt::format("meet {}", each.count()));
    for (PeersProcess& each : processes_) (void)each.answer(each.count());
    return us_since(begin) * 1e-6;
}

void IdlePeers::call_all() {
    for (PeersProcess& each : processes_) {
        each.ask("call");
        if (const double called = each.answer(1).front(); called != static_cast<double>(each.count()))
            throw Error(ErrorCode::internal, fmt::format("{} of {} idle peers have called", called, each.count()));
    }
}

IdlePeers::FirstCalls IdlePeers::first_calls() {
    FirstCalls calls;
    for (PeersProcess& each : processes_) {
        each.ask("first");
        const std::vector<double> ns = each.answer(2 * (each.count() - 1));
        for (std::size_t i = 0; i < ns.size(); i += 2) {
            calls.first_ns.push_back(ns[i]);
            calls.warm_ns.push_back(ns[i + 1]);
        }
    }
    return calls;
}

Footprint IdlePeers::footprint() const {
    return std::transform_reduce(processes_.begin(), processes_.end(), Footprint{}, std::plus(),
                                 [](const PeersProcess& each) { return footprint_of(each.pid()); });
}

}  // namespace rove::bench
