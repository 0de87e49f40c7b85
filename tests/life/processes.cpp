#include "processes.hpp"

#include <fstream>
#include <iterator>

#include "work.h"

namespace life {

Process start(const std::vector<std::string>& command, const std::string& files, int runs) {
    using rove::value_or_throw;
    const rove::Descriptor out = value_or_throw(rove::open_for_output(files + ".out", true));
    const rove::Descriptor err = value_or_throw(rove::open_for_output(files + ".log", true));
    return value_or_throw(
        Process::start(command, {.out = out.number(), .err = err.number(), .descriptors = {{runs, LIFE_RUNS_FD}}}));
}

std::string read_file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace life
