// Processes that a benchmark starts: pinned, and gone when it ends, however it ends.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "toolchain/files.hpp"

namespace rove::bench {

class Child {
public:
    // Starts it on a core. Its standard output can be read; its standard error goes to a file, or nowhere.
    Child(const std::vector<std::string>& command, int core, const std::vector<std::string>& environment = {},
          const std::string& errors = "/dev/null");
    ~Child();  // ends it
    Child(const Child&) = delete;
    [[nodiscard]] std::string read_line();  // empty: it has ended
    [[nodiscard]] std::string read_all();
    int wait();  // its exit status, or 128 + the signal's number
    [[nodiscard]] pid_t pid() const { return pid_; }

private:
    pid_t pid_ = -1;
    int output_ = -1;
};

// A folder of the benchmark's own, gone with it, also where a signal ends it (toolchain::Interruptible).
class Scratch {
public:
    [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

private:
    toolchain::TemporaryFolder folder_ = value_or_throw(toolchain::TemporaryFolder::make());
};

}  // namespace rove::bench
