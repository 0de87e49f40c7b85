#include "bench/sides.hpp"

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

}  // namespace rove::bench
