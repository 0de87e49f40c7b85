// The idle peers of `rove bench idle`: clients of one node, many to a process of bench/idle/program.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bench/session.hpp"
#include "bench/shapes.hpp"
#include "bench/sides.hpp"
#include "bench/usage.hpp"

namespace rove::bench {

inline constexpr const char* kPeersProgram = "rove_bench_peers";  // beside the command

// One process of them.
class PeersProcess {
public:
    PeersProcess(const Settings& settings, const Session& session, std::size_t count);
    // Sends a command. Its numbers are read by answer(), which throws where they are not `wanted`.
    void ask(const std::string& command);
    [[nodiscard]] std::vector<double> answer(std::size_t wanted);
    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] pid_t pid() const { return process_.pid(); }

private:
    [[noreturn]] void fail_as_it_says();
    Scratch scratch_;
    std::size_t count_;
    Process process_;
};

class IdlePeers {
public:
    // Makes that many clients, which do not know the session's node yet, in processes on the client's core: eight, or fewer so that each
    // has two clients.
    IdlePeers(const Settings& settings, const Session& session, std::size_t count);

    // The ns of each meeting. The processes take turns.
    [[nodiscard]] std::vector<double> meet_one_by_one();
    // Seconds until all have met the node, where each process has one meeting at a time.
    [[nodiscard]] double meet_together();
    [[nodiscard]] std::size_t together() const { return processes_.size(); }
    // Each of them calls once. From here on the node knows it, and has nothing of it to do.
    void call_all();
    struct FirstCalls {
        std::vector<double> first_ns, warm_ns;  // one each for all clients but one of each process
    };
    // While the node is awake.
    [[nodiscard]] FirstCalls first_calls();
    [[nodiscard]] Footprint footprint() const;  // of all processes together

private:
    std::vector<PeersProcess> processes_;
};

}  // namespace rove::bench
