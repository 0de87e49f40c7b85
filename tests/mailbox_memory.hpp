// The mailboxes that a process has mapped, its own and its peers': their resident memory, and how many they are.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <fstream>
#include <string>

namespace rove::test {

inline std::size_t memory_of_mailboxes(pid_t process) {
    std::ifstream maps("/proc/" + std::to_string(process) + "/smaps");
    std::size_t bytes = 0;
    bool is_mailbox = false;
    for (std::string line; std::getline(maps, line);) {
        if (line.find('-') < line.find(' ')) is_mailbox = line.find("rove-mailbox") != std::string::npos;
        if (is_mailbox && line.starts_with("Rss:")) bytes += std::stoul(line.substr(4)) * 1024;
    }
    return bytes;
}
inline std::size_t mailboxes_of(pid_t process) {
    std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find("rove-mailbox") != std::string::npos ? 1 : 0;
    return count;
}

}  // namespace rove::test
