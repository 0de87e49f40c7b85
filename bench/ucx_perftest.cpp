#include "bench/ucx_perftest.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "bench/sides.hpp"

namespace rove::bench {
namespace {

bool is_listening(unsigned port) {
    std::ostringstream wanted;
    wanted << std::uppercase << std::hex << ":";
    wanted.width(4);
    wanted.fill('0');
    wanted << port;
    for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
        std::ifstream table(path);
        for (std::string line; std::getline(table, line);) {
            std::istringstream fields(line);
            std::string number, local, remote, state;
            fields >> number >> local >> remote >> state;
            if (state == "0A" && local.ends_with(wanted.str())) return true;
        }
    }
    return false;
}

// A port nobody listens on, different from run to run and from process to process.
unsigned free_port() {
    static unsigned next = 20'000 + static_cast<unsigned>(getpid()) % 10'000;
    for (unsigned tries = 0; tries < 10'000; ++tries, ++next)
        if (next = next > 32'000 ? 20'000 : next; !is_listening(next)) return next++;
    return 0;
}

}  // namespace

std::optional<PerftestResult> run_perftest(const Cores& cores, const std::string& test, const std::string& fabric,
                                           std::size_t bytes, unsigned long iterations, std::string& why) {
    const unsigned port = free_port();
    const std::string port_text = std::to_string(port);
    const std::vector<std::string> environment = {fabric == "shm" ? "UCX_TLS=posix,cma,self" : "UCX_TLS=tcp,self",
                                                  "UCX_NET_DEVICES=lo", "UCX_WARN_UNUSED_ENV_VARS=n"};
    const auto start = [&](const std::vector<std::string>& command, int core) -> std::optional<Process> {
        Result<Process> started = start_side(command, core, environment);
        if (started) return std::move(*started);
        why = started.error().message() + "; it is in the Debian package ucx-utils";
        return std::nullopt;
    };
    const std::optional<Process> server = start({"ucx_perftest", "-p", port_text}, cores.node);
    if (!server) return std::nullopt;
    for (unsigned tries = 0; !is_listening(port); ++tries) {
        if (tries == 300) {
            why = "ucx_perftest does not listen";
            return std::nullopt;
        }
        usleep(10'000);
    }
    std::optional<Process> client =
        start({"ucx_perftest", "-p", port_text, "127.0.0.1", "-t", test, "-s", std::to_string(bytes), "-n",
               std::to_string(iterations), "-w", std::to_string(iterations / 10), "-f"},
              cores.client);
    if (!client) return std::nullopt;
    const std::string output = client->communicate().out;
    // The last line of figures: iterations, 50th percentile, average, overall (us), bandwidths (MB/s), message rates (1/s).
    std::istringstream lines(output);
    std::optional<PerftestResult> result;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        double iterations_done = 0, typical = 0, average = 0, overall = 0, mb = 0, mb_overall = 0, rate = 0,
               rate_overall = 0;
        if (fields >> iterations_done >> typical >> average >> overall >> mb >> mb_overall >> rate >> rate_overall)
            result = PerftestResult{typical * 1000, rate_overall};
    }
    if (!result) why = "ucx_perftest -t " + test + " gave no figures over " + fabric;
    return result;
}

}  // namespace rove::bench
