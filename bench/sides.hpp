// Processes that a benchmark starts: pinned, and gone when it ends, however it ends.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "toolchain/files.hpp"

namespace rove::bench {

// Starts a program on one of the benchmark's cores, or on both (machine.hpp). Its standard output can be read; its standard error goes to
// a file, or nowhere. Its
// standard input is one of ProcessOptions' values.
[[nodiscard]] Result<Process> start_side(const std::vector<std::string>& command, int core,
                                         const std::vector<std::string>& environment = {},
                                         const std::filesystem::path& errors = "/dev/null",
                                         int in = ProcessOptions::kNothing);

// A `rove node` on loopback, which lets in whoever has the cookie's file, and its address. It says nothing but its address.
struct StartedNode {
    Process process;
    std::string address;
};
// Throws Error, with what the node has said, if it does not start.
[[nodiscard]] StartedNode start_node(const std::filesystem::path& rove, const std::string& cookie, int core,
                                     const std::vector<std::string>& flags);

// A folder of the benchmark's own, gone with it, also where a signal ends it (toolchain::Interruptible).
class Scratch {
public:
    [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

private:
    toolchain::TemporaryFolder folder_ = value_or_throw(toolchain::TemporaryFolder::make());
};

}  // namespace rove::bench
