// Runs programs: each gets what it is given of this process and nothing else, and ends with its Process.
//
// A program is in a process group of its own, so that what it starts ends with it, and it is killed when the thread that started it ends,
// however that ends. A signal of the terminal (Ctrl-C) therefore reaches this process only, which ends its programs.
//
// Threads: any; a Process is used by one at a time.
//
// Invariant: a program that has ended is reaped by ~Process, so until then no other process has its number, or its group's. It does not hold
// where the process that uses Rove ignores SIGCHLD or waits for all of its children.
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
    static constexpr int kAsOutput = -3;  // of err: the same as out
    int in = kNothing, out = kPipe, err = kNothing;
    // Other descriptors of this process, and their numbers there. All that are not named are closed there.
    std::vector<std::pair<int, int>> descriptors = {};
    std::vector<std::string> environment = {};  // "NAME=VALUE": in place of this process's own, or beside them
    std::vector<int> cores = {};                // that it may run on; none: as this process
    // How long a Process that ends waits after SIGTERM before it kills; zero: it kills at once.
    std::chrono::milliseconds grace{0};
};

// The status and the output of a program that was run.
struct Ran {
    int status = 0;  // exit status; 128 + signal when it was ended by one
    std::string out, err;
};

class Process {
public:
    Process() = default;  // of no program
    // Looks for the program on PATH where its name has no slash; no shell. unsupported: there is no such program. failed: it cannot be
    // executed. overloaded: no memory, process or descriptor is left.
    [[nodiscard]] static Result<Process> start(const std::vector<std::string>& command,
                                               const ProcessOptions& options = {});
    Process(Process&& other) noexcept { swap(other); }
    Process& operator=(Process&& other) noexcept {
        Process ended(std::move(other));
        swap(ended);
        return *this;
    }
    ~Process();  // ends the program, and all of its group that is left; not in a fork of the process that started it

    // It has been started, and was not seen to end yet.
    [[nodiscard]] bool runs() const { return pid_ > 0 && !status_; }
    // No other process has this number before the Process ends, even if the program has ended. -1: of no program.
    [[nodiscard]] pid_t pid() const { return pid_; }
    // Its exit status, or 128 + the signal that ended it; nothing: it still runs when the time is up.
    std::optional<int> wait(Deadline until = {});
    std::optional<int> ended() { return wait(Clock::now()); }
    // To the program alone, not to its group. Nothing happens once it has been seen to end.
    void signal(int number) const;
    // Kills the group, and waits for the program's end.
    int kill();

    // A line of its output, a pipe, without the line feed: as much of it as there was when the output ended, or the time was up.
    [[nodiscard]] std::string read_line(Deadline until = {});
    // Reads both outputs, where they are pipes, until the program has ended; of each the first `bytes_max` are kept. Where the time is up
    // first, the group is killed.
    [[nodiscard]] Ran communicate(Deadline until = {}, std::size_t bytes_max = std::numeric_limits<std::size_t>::max());
    // The ends of pipes that this process has.
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

// A file for a program to write to, made where it is not there. failed: it cannot be opened.
[[nodiscard]] Result<Descriptor> open_for_output(const std::filesystem::path& path, bool append = false);

}  // namespace rove
