#include "usage.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "processes.hpp"

namespace life {

Usage usage_of(pid_t process) {
    const std::string folder = "/proc/" + std::to_string(process);
    Usage usage;
    const std::string maps = read_file(folder + "/maps");
    usage.mappings = std::count(maps.begin(), maps.end(), '\n');
    std::error_code ignored;
    for (const auto& each : std::filesystem::directory_iterator(folder + "/fd", ignored))
        (void)each, ++usage.descriptors;
    const std::string status = read_file(folder + "/status");
    const auto field = [&](const std::string& name) {
        const std::size_t at = status.find("\n" + name + ":");
        return at == std::string::npos ? 0 : std::atol(status.c_str() + at + name.size() + 2);
    };
    usage.threads = field("Threads");
    usage.resident_kib = field("VmRSS");
    return usage;
}

}  // namespace life
