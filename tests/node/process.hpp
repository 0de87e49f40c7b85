// Real processes for the tests: `rove node` and other commands, ended whatever happens.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace rove::test {

[[nodiscard]] std::string built(const std::string& program);  // a path in this build
[[nodiscard]] std::string rove();                             // the command's
[[nodiscard]] std::filesystem::path source_folder();
[[nodiscard]] const std::filesystem::path& scratch();  // a folder of this test program's own, removed at its end

struct Ran {
    int status = 0;  // exit status, or 128 + signal
    std::string out, err;
};
// Runs a command to its end (killed after `limit`).
[[nodiscard]] Ran run(const std::vector<std::string>& command, std::chrono::seconds limit = std::chrono::seconds(60));

// fork(), which never gives -1: to kill(), -1 names every process of this user.
[[nodiscard]] pid_t fork_or_throw();

// Builds tests/packages/SOURCE once per set of flags, and gives the package's path.
[[nodiscard]] std::string package(const std::string& source, const std::vector<std::string>& flags = {},
                                  const std::string& name = {});

// A `rove node` that is ended with the object.
class NodeProcess {
public:
    // Starts it and waits for its `listening` line; throws where there is none, so that there is no NodeProcess without a process.
    explicit NodeProcess(std::vector<std::string> options = {}, const std::string& listen = "127.0.0.1:0");
    NodeProcess(NodeProcess&& other) noexcept;
    NodeProcess& operator=(NodeProcess&& other) noexcept {
        std::swap(pid_, other.pid_);
        std::swap(address_, other.address_);
        std::swap(log_file_, other.log_file_);
        return *this;
    }
    ~NodeProcess();
    [[nodiscard]] const std::string& address() const { return address_; }
    [[nodiscard]] int pid() const { return pid_; }
    [[nodiscard]] std::string log() const;  // what it has written to stderr so far
    void signal(int number) const;          // throws after wait(), as wait() does
    int wait();                             // its exit status; 128 + signal
    void kill_now();
    void stop() const;  // SIGSTOP, and waits until it has stopped

private:
    int pid_ = -1;
    std::string address_;
    std::string log_file_;
};

}  // namespace rove::test
