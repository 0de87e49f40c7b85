#include "bench/machine.hpp"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "fabric/ucx/ucx_fabric.hpp"

namespace rove::bench {

Cores choose_cores() {
    static const Cores chosen = [] {  // before anything is pinned
        cpu_set_t allowed;
        CPU_ZERO(&allowed);
        sched_getaffinity(0, sizeof allowed, &allowed);
        std::vector<int> cores;
        for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core)
            if (CPU_ISSET(core, &allowed)) cores.push_back(core);
        return Cores{cores.back(), cores.front()};  // the node on the first, where a kernel's own work tends to be
    }();
    return chosen;
}

std::vector<int> cores_of(int core) {
    const Cores both = choose_cores();
    return core == kAnyCore ? std::vector{both.client, both.node} : std::vector{core};
}

void pin_to(int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (const int each : cores_of(core)) CPU_SET(each, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
}

double ns_per_tick() {
    static const double value = [] {
        using Clock = std::chrono::steady_clock;
        const auto begin = Clock::now();
        const std::uint64_t first = ticks();
        while (Clock::now() - begin < std::chrono::milliseconds(20)) {
        }
        const std::uint64_t last = ticks();
        return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
               static_cast<double>(last - first);
    }();
    return value;
}

double us_since(std::uint64_t begin_ticks) {
    return static_cast<double>(ticks() - begin_ticks) * ns_per_tick() / 1000;
}

std::string cpu_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
    return "unknown CPU";
}

std::string kernel_name() {
    utsname name{};
    uname(&name);
    return std::string(name.sysname) + " " + name.release;
}

std::string ucx_version() {
    const Result<std::string_view> version = fabric::ucx_version();
    return version ? std::string(*version) : "none";
}

double percentile(std::vector<double>& values, double fraction) {
    if (values.empty()) return 0;
    const auto at =
        std::min(values.size() - 1, static_cast<std::size_t>(static_cast<double>(values.size()) * fraction));
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
    return values[at];
}

double median(std::vector<double> values) {
    return percentile(values, 0.5);
}

}  // namespace rove::bench
