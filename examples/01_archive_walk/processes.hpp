// Child processes: commands whose output is read, and nodes that end when this program does, however it ends.
//
// Threads: end_on_signals() has one of its own, which ends everything when a signal arrives; all else is for one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace archive_walk {

// From now on SIGINT, SIGTERM and SIGHUP end all that this process has started, remove its ScratchDirectories, and then
// end it with status 128 + signal. To be called before the process has other threads, because they inherit that these
// signals are blocked. A reader of our output that goes away is an error of a write from now on, and no signal.
void end_on_signals();

// Runs a command to its end and gives what it printed. Throws std::runtime_error, with what it printed on stderr, when
// it cannot be run or does not exit with 0.
[[nodiscard]] std::string output_of(const std::vector<std::string>& command);

// A directory of this run's own, removed with all in it.
class ScratchDirectory {
public:
    ScratchDirectory();
    ~ScratchDirectory();
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

// Some `rove node` processes that have joined one another. They get SIGTERM from the destructor, when a signal ends this
// process (end_on_signals), and from the kernel when this process dies in any other way.
class NodeProcesses {
public:
    // `rove` is the command; `logs` a directory for what the nodes say on stderr.
    NodeProcesses(std::filesystem::path rove, std::filesystem::path logs);
    ~NodeProcesses();
    NodeProcesses(const NodeProcesses&) = delete;
    NodeProcesses& operator=(const NodeProcesses&) = delete;

    // Starts one more, which joins the first, and returns the address it listens on. Throws std::runtime_error, with
    // what the node said, when it does not listen in time.
    const std::string& start(std::chrono::seconds patience);
    [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
    // What the nodes have said on stderr.
    [[nodiscard]] std::string complaints() const;

private:
    std::filesystem::path rove_;
    std::filesystem::path logs_;
    [[nodiscard]] std::filesystem::path log_of(std::size_t index) const;

    std::vector<std::string> addresses_;
    std::vector<pid_t> processes_;
};

}  // namespace archive_walk
