#include "bench/usage.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "bench/machine.hpp"
#include "rove/error.hpp"

namespace rove::bench {
namespace {

namespace fs = std::filesystem;

// The numbers of a file of `name: number` lines; those of other lines are left out.
std::map<std::string, double> numbers_of(const fs::path& path) {
    std::map<std::string, double> numbers;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (const std::size_t colon = line.find(':'); colon != std::string::npos)
            numbers[line.substr(0, colon)] = std::strtod(line.c_str() + colon + 1, nullptr);
    return numbers;
}

}  // namespace

Footprint footprint_of(pid_t pid) {
    const fs::path process = fmt::format("/proc/{}", pid);
    const std::map<std::string, double> kib = numbers_of(process / "smaps_rollup");
    std::error_code gone;
    const fs::directory_iterator descriptors(process / "fd", gone);
    if (!kib.contains("Rss") || gone)
        throw Error(ErrorCode::disconnected, fmt::format("a process of the benchmark, {}, has ended", pid));
    return {kib.at("Rss") * 1024, kib.at("Pss") * 1024,
            static_cast<double>(std::distance(begin(descriptors), end(descriptors)))};
}

Activity::Activity(pid_t pid) : threads_(fmt::format("/proc/{}/task", pid)), before_(read()), begin_(ticks()) {}

double Activity::core_share() const {
    return since_begin(&Thread::core_ns) / (us_since(begin_) * 1e3);
}

double Activity::wakes_per_second() const {
    return since_begin(&Thread::switches) / (us_since(begin_) * 1e-6);
}

std::map<std::string, Activity::Thread> Activity::read() const {
    std::map<std::string, Thread> threads;
    for (const auto& thread : fs::directory_iterator(threads_)) {
        Thread& of = threads[thread.path().filename()];
        std::ifstream(thread.path() / "schedstat") >> of.core_ns;
        const std::map<std::string, double> status = numbers_of(thread.path() / "status");
        for (const char* name : {"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"})
            if (const auto found = status.find(name); found != status.end()) of.switches += found->second;
    }
    return threads;
}

double Activity::since_begin(double Thread::* of) const {
    double sum = 0;
    for (const auto& [number, thread] : read()) {
        const auto earlier = before_.find(number);
        sum += thread.*of - (earlier == before_.end() ? 0 : earlier->second.*of);
    }
    return sum;
}

}  // namespace rove::bench
