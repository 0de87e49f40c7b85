// Real processes for the tests: `rove node` and other commands, ended whatever happens.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/process.hpp"

namespace rove::test {

[[nodiscard]] std::string built(const std::string& program);  // a path in this build
[[nodiscard]] std::string rove();                             // the command's
[[nodiscard]] std::filesystem::path source_folder();
[[nodiscard]] const std::filesystem::path& scratch();  // a folder of this test program's own, removed at its end

// Runs a command to its end (killed after `limit`). Status 127: it cannot be run.
[[nodiscard]] Ran run(const std::vector<std::string>& command, std::chrono::seconds limit = std::chrono::seconds(60));

// fork(), which never gives -1: to kill(), -1 names every process of this user.
[[nodiscard]] pid_t fork_or_throw();

// Builds tests/packages/SOURCE once per set of flags, and gives the package's path: a file that others may be reading.
[[nodiscard]] std::string package(const std::string& source, const std::vector<std::string>& flags = {},
                                  const std::string& name = {});

// A `rove node` that is ended with the object.
class NodeProcess {
public:
    // Starts it and waits for its `listening` line; throws where there is none, so that there is no NodeProcess without a process.
    explicit NodeProcess(std::vector<std::string> options = {}, const std::string& listen = "127.0.0.1:0");
    [[nodiscard]] const std::string& address() const { return address_; }
    [[nodiscard]] pid_t pid() const { return process_.pid(); }
    [[nodiscard]] std::string log() const;  // what it has written to stderr so far
    void signal(int number) const;          // throws after wait(), as wait() does
    int wait();                             // its exit status; 128 + signal
    void kill_now();
    void stop() const;  // SIGSTOP, and waits until it has stopped

private:
    std::string log_file_;
    Process process_;
    std::string address_;
};

}  // namespace rove::test
