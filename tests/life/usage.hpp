// The resources that a process holds, as the kernel counts them.
#pragma once

#include <sys/types.h>

#include <string>

namespace life {

struct Usage {
    long mappings = 0, descriptors = 0, threads = 0, resident_kib = 0;
};
[[nodiscard]] Usage usage_of(pid_t process);

// The resources that may stay after the clients have left, each with a bound of its own: the thread that compiles, which begins with the first
// bitcode, and those that took the place of functions that waited (SECURITY.md); an arena of the allocator for each thread (two mappings),
// stacks and pages that it keeps for the next large message. The log's and the runs' descriptors are in both counts. What stayed for
// each client or connection would be some thirty.
inline constexpr Usage kSlack{.mappings = 32, .descriptors = 4, .threads = 4, .resident_kib = 96 * 1024};

// Over UCX each of the other members' links may hold workers of its own (UcxWorkers): with six descriptors, and two mappings for each of
// 16 links that they have had.
inline constexpr Usage kSlackOverUcx{.mappings = kSlack.mappings + 4 * 32,
                                     .descriptors = kSlack.descriptors + 4 * 6,
                                     .threads = kSlack.threads,
                                     .resident_kib = kSlack.resident_kib};

[[nodiscard]] inline bool is_back(const Usage& now, const Usage& before, const Usage& slack) {
    return now.mappings <= before.mappings + slack.mappings &&
           now.descriptors <= before.descriptors + slack.descriptors && now.threads <= before.threads + slack.threads &&
           now.resident_kib <= before.resident_kib + slack.resident_kib;
}

}  // namespace life
