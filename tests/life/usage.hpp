// What a process holds, as the kernel counts it.
#pragma once

#include <sys/types.h>

#include <string>

namespace life {

struct Usage {
    long mappings = 0, descriptors = 0, threads = 0, resident_kib = 0;
};
[[nodiscard]] Usage usage_of(pid_t process);

// What may stay after the clients are gone, each a cache with a bound of its own: an arena of the allocator for each thread (two
// mappings), stacks and pages that it keeps for the next large message; the log's and the runs' descriptors are in both counts.
inline constexpr Usage kSlack{.mappings = 24, .descriptors = 4, .threads = 1, .resident_kib = 96 * 1024};

// `mappings_too`: not over UCX, which keeps a mapping or two of each process that it has met (1.13).
[[nodiscard]] inline bool is_back(const Usage& now, const Usage& before, bool mappings_too) {
    return (!mappings_too || now.mappings <= before.mappings + kSlack.mappings) &&
           now.descriptors <= before.descriptors + kSlack.descriptors &&
           now.threads <= before.threads + kSlack.threads &&
           now.resident_kib <= before.resident_kib + kSlack.resident_kib;
}

}  // namespace life
