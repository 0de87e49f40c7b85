// What a process takes of the machine, as /proc shows it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace rove::bench {

// What a process holds at one moment.
struct Footprint {
    double resident_bytes = 0;      // shared memory that it has touched is counted in full
    double proportional_bytes = 0;  // of a page that several processes map, each one's share
    double descriptors = 0;
    [[nodiscard]] Footprint operator+(const Footprint& other) const {
        return {resident_bytes + other.resident_bytes, proportional_bytes + other.proportional_bytes,
                descriptors + other.descriptors};
    }
};
// disconnected: it has ended.
[[nodiscard]] Footprint footprint_of(pid_t pid);

// What the threads of a process have done since this object was made. Of threads that have ended since, nothing is counted.
class Activity {
public:
    explicit Activity(pid_t pid);
    [[nodiscard]] double core_share() const;  // of one core
    // Context switches of all threads, voluntary (the thread slept) or not.
    [[nodiscard]] double wakes_per_second() const;

private:
    struct Thread {
        double core_ns = 0, switches = 0;
    };
    [[nodiscard]] std::map<std::string, Thread> read() const;
    [[nodiscard]] double since_begin(double Thread::* of) const;
    std::filesystem::path threads_;
    std::map<std::string, Thread> before_;
    std::uint64_t begin_;
};

}  // namespace rove::bench
