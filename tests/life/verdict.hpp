// The verdict: compares the runs that the functions recorded with the results that the clients received.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ledger.hpp"
#include "town.hpp"

namespace life {

struct Fault {
    std::string what;  // one of few sentences, so that they can be counted
    std::string details;
};

struct Verdict {
    static constexpr auto kKinds = static_cast<std::size_t>(Kind::count);
    static constexpr auto kStates = static_cast<std::size_t>(State::count);
    std::uint64_t pieces = 0, runs = 0, slowest_ms = 0;
    std::uint64_t posts = 0, posts_run = 0;
    std::array<std::array<std::uint64_t, kStates>, kKinds> states{};
    std::array<std::uint64_t, 10> codes{};  // of those that failed or were not sent
    std::vector<Fault> faults;
};

// Reads `runs_path` and each client's ledger.
[[nodiscard]] Verdict judge(const std::string& runs_path, const std::vector<ClientRecord>& clients);

}  // namespace life
