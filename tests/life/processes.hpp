// The processes of the test: started with what they inherit, ended whatever happens. One thread starts them all, and they die
// with it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/process.hpp"

namespace life {

using rove::Process;
using Clock = std::chrono::steady_clock;

// Its stdout and stderr are appended to files of that stem. `runs` becomes LIFE_RUNS_FD. Throws where it cannot be started.
[[nodiscard]] Process start(const std::vector<std::string>& command, const std::string& files, int runs);

[[nodiscard]] std::string read_file(const std::string& path);

}  // namespace life
