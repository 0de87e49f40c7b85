// Debian's ucx_perftest, run beside us as the yardstick: its server on the node's core, its client on ours.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "bench/machine.hpp"

namespace rove::bench {

struct PerftestResult {
    double typical_ns = 0;  // latency tests: the 50th percentile of one way
    double per_second = 0;  // bandwidth tests: messages
};

// `test` as `ucx_perftest -t` names it; `fabric` shm or tcp. Nothing: it is not installed, or does not know the transport
// (`why` says so).
[[nodiscard]] std::optional<PerftestResult> run_perftest(const Cores& cores, const std::string& test,
                                                         const std::string& fabric, std::size_t bytes,
                                                         unsigned long iterations, std::string& why);

}  // namespace rove::bench
