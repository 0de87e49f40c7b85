// The processes of the test: started with what they inherit, ended whatever happens. One thread starts them all, and they die
// with it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace life {

using Clock = std::chrono::steady_clock;

class Process {
public:
    Process() = default;
    // Its stdout and stderr are appended to files of that stem. `runs` becomes LIFE_RUNS_FD.
    Process(const std::vector<std::string>& command, const std::string& files, int runs);
    Process(Process&& other) noexcept;
    Process& operator=(Process&& other) noexcept;
    ~Process();  // kills

    [[nodiscard]] bool runs() const { return pid_ > 0 && !status_; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    // Its exit status, or 128 + signal, once it has ended.
    std::optional<int> ended();
    // The same, after having waited that long; nothing: it still runs.
    std::optional<int> wait(std::chrono::milliseconds limit);
    void signal(int number) const;

private:
    pid_t pid_ = -1;
    std::optional<int> status_;
};

[[nodiscard]] std::string read_file(const std::string& path);

}  // namespace life
