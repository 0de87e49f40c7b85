// The machine that is measured on: its cores and its clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arch/arch.hpp"

namespace rove::bench {

// The cores the two sides are pinned to: the first two that this process may use. One core: both are the same.
struct Cores {
    int client = 0;
    int node = 0;
};
[[nodiscard]] Cores choose_cores();
inline constexpr int kAnyCore = -1;
[[nodiscard]] std::vector<int> cores_of(int core);  // one of the two, or both
// Pins the calling thread to these, and those that it starts from here on.
void pin_to(int core);

// The fastest clock there is: the time-stamp counter (9 ns a reading where steady_clock takes 20).
[[nodiscard]] inline std::uint64_t ticks() {
    return arch::ticks();
}
[[nodiscard]] double ns_per_tick();  // measured once, over 20 ms
[[nodiscard]] double us_since(std::uint64_t begin_ticks);

[[nodiscard]] std::string cpu_name();
[[nodiscard]] std::string kernel_name();
[[nodiscard]] std::string ucx_version();

// Of anything; half-way values of an even number are not averaged. Reorders. 0 for none.
[[nodiscard]] double percentile(std::vector<double>& values, double fraction);
[[nodiscard]] double median(std::vector<double> values);

}  // namespace rove::bench
