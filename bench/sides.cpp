#include "bench/sides.hpp"

#include <fstream>
#include <iterator>
#include <utility>

#include "bench/machine.hpp"
#include "rove/error.hpp"

namespace rove::bench {

// A node ends its calls before it ends.
constexpr std::chrono::seconds kGrace{3};

Result<Process> start_side(const std::vector<std::string>& command, int core,
                           const std::vector<std::string>& environment, const std::filesystem::path& errors, int in) {
    ROVE_TRY(const Descriptor errors_to, open_for_output(errors));
    return Process::start(
        command,
        {.in = in, .err = errors_to.number(), .environment = environment, .cores = cores_of(core), .grace = kGrace});
}

StartedNode start_node(const std::filesystem::path& rove, const std::string& cookie, int core,
                       const std::vector<std::string>& flags) {
    std::vector<std::string> command{rove, "node", "--listen", "127.0.0.1:0", "--cookie", cookie, "--log", "off"};
    command.insert(command.end(), flags.begin(), flags.end());
    const std::string errors = cookie + "-node-says";
    StartedNode node{.process = value_or_throw(start_side(command, core, {}, errors)), .address = {}};
    const std::string line = node.process.read_line(), begin = "listening ";
    if (!line.starts_with(begin)) {
        std::ifstream said(errors);
        throw Error(ErrorCode::disconnected,
                    "the benchmark's node did not start: " + std::string((std::istreambuf_iterator<char>(said)), {}));
    }
    node.address = line.substr(begin.size());
    return node;
}

}  // namespace rove::bench
