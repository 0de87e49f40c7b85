// Runs programs: each gets only what it is given of this process, and ends with its Process. Its soft limit of descriptors is what this program's was
// at first (descriptor_limit.hpp).
//
// A program is in a process group of its own, so that what it starts ends with it, and it is killed when the thread that started it ends,
// for whatever reason. A signal of the terminal (Ctrl-C) therefore reaches this process only, which ends its programs.
//
// A Process is a child: wait() and SIGCHLD of the whole process report it. The processes that compile bitcode in programs that use Rove must not
// be children, so they have a launcher of their own (jit/process/process.hpp), which gives no output and no exit status.
//
// Threads: any; a Process is used by one at a time.
//
// Invariant: a program that has ended is reaped by ~Process, so until then no other process has its number, or its group's. It does not hold
// if the process that uses Rove ignores SIGCHLD or waits for all of its children.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace rove {

struct ProcessOptions {
    // The values of a standard stream: one of these, or a descriptor of this process.
    static constexpr int kNothing = -1;   // /dev/null
    static constexpr int kPipe = -2;      // a pipe to or from this process
    static constexpr int kAsOutput = -3;  // err only: the same as out
    int in = kNothing, out = kPipe, err = kNothing;
    // Other descriptors of this process, and their numbers in the program. All others are closed in the program.
    std::vector<std::pair<int, int>> descriptors = {};
    std::vector<std::string> environment = {};  // "NAME=VALUE": replaces this process's own, or is added to them
    std::vector<int> cores = {};                // cores on which it may run; none: those of this process
    // How long a Process that ends waits after SIGTERM before it kills; zero: it kills at once.
    std::chrono::milliseconds grace{0};
};

// The status and the output of a program that was run.
struct Ran {
    int status = 0;  // exit status; 128 + signal if a signal ended it
    std::string out, err;
};

class Process {
public:
    Process() = default;  // no program
    // Searches PATH for the program if its name has no slash; no shell. unsupported: there is no such program. failed: it cannot be
    // executed. overloaded: no memory, process or descriptor is left.
    [[nodiscard]] static Result<Process> start(const std::vector<std::string>& command,
                                               const ProcessOptions& options = {});
    Process(Process&& other) noexcept { swap(other); }
    Process& operator=(Process&& other) noexcept {
        Process ended(std::move(other));
        swap(ended);
        return *this;
    }
    ~Process();  // ends the program, and the rest of its group; not in a fork of the process that started it

    // Whether it has been started, and was not yet seen to have ended.
    [[nodiscard]] bool runs() const { return pid_ > 0 && !status_; }
    // No other process has this number before the Process ends, even if the program has ended. -1: no program.
    [[nodiscard]] pid_t pid() const { return pid_; }
    // Its exit status, or 128 + the signal that ended it; nothing: it still runs when the time is over.
    std::optional<int> wait(Deadline until = {});
    std::optional<int> ended() { return wait(Clock::now()); }
    // Sends the signal to the program alone, not to its group. Does nothing once the program has been seen to have ended.
    void signal(int number) const;
    // Kills the group, and waits for the program's end.
    int kill();

    // A line of its output, a pipe, without the line feed; only a part of one if the output ended or the time was over.
    [[nodiscard]] std::string read_line(Deadline until = {});
    // Reads both outputs, if they are pipes, until the program has ended; of each the first `bytes_max` are kept. If the time is over
    // first, the group is killed.
    [[nodiscard]] Ran communicate(Deadline until = {}, std::size_t bytes_max = std::numeric_limits<std::size_t>::max());
    // This process's ends of the pipes.
    [[nodiscard]] Descriptor& in() { return in_; }
    [[nodiscard]] Descriptor& out() { return out_; }

private:
    void swap(Process& other) noexcept;
    pid_t pid_ = -1;
    pid_t parent_ = -1;
    std::optional<int> status_;
    Descriptor in_, out_, err_;
    std::chrono::milliseconds grace_{0};
};

// Opens a file for a program to write to, and creates it if it does not exist. failed: it cannot be opened.
[[nodiscard]] Result<Descriptor> open_for_output(const std::filesystem::path& path, bool append = false);

}  // namespace rove
