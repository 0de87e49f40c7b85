// The trouble that a seed means: made in advance, so that a seed replays it whatever the processes do.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace life {

inline constexpr unsigned kNodes = 3;
inline constexpr unsigned kClientsAtFirst = 4, kClientsMax = 8;

enum class Trouble : std::uint8_t {
    client_leaves,
    client_killed,
    client_stopped,
    client_more,
    client_cut,
    node_killed,
    node_ended,
    node_stopped,
    nodes_cut,
    count
};
inline constexpr const char* kTroubleNames[] = {"client leaves",   "client killed",  "client stopped",
                                                "one more client", "client cut off", "node killed",
                                                "node ended",      "node stopped",   "nodes cut apart"};

struct Event {
    std::chrono::milliseconds at;
    Trouble trouble;
    unsigned who, other;  // indices, of clients by the number that there are at that time
    std::chrono::milliseconds lasts;
    std::uint64_t seed;  // of a client that it starts
};

struct Plan {
    unsigned resident = 0;  // the node whose program has functions built in
    unsigned survivor = 0;  // the node that is never killed
    unsigned threads[kNodes]{};
    std::vector<std::uint64_t> first_seeds;
    std::vector<Event> events;
};

// `hard`: 1 is an event every 300 ms on average.
[[nodiscard]] Plan plan_of(std::uint64_t seed, std::chrono::milliseconds length, double hard);

}  // namespace life
