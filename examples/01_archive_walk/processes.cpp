#include "processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

namespace archive_walk {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kNodesMax = 32;
constexpr std::chrono::seconds kPatience{5};  // that a process has to end after SIGTERM

// What must not outlive this process. The thread that a signal wakes takes the lock for good, so that nothing is started,
// reported or removed beside it.
struct Owned {
    std::mutex mutex;
    std::set<pid_t> processes;  // each leads a group of its own: what it starts ends with it
    std::set<std::filesystem::path> directories;
};

Owned& owned() {
    static auto* const all = new Owned;  // for the thread that waits for signals it lives to the very end
    return *all;
}

sigset_t ending_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
    return signals;
}

[[noreturn]] void end_everything(int signal) {
    Owned& all = owned();
    all.mutex.lock();
    for (const pid_t process : all.processes) kill(-process, SIGTERM);
    const auto deadline = Clock::now() + kPatience;
    for (const pid_t process : all.processes) {
        while (waitpid(process, nullptr, WNOHANG) == 0) {
            if (Clock::now() > deadline) kill(-process, SIGKILL);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    std::error_code ignored;
    for (const auto& directory : all.directories) std::filesystem::remove_all(directory, ignored);
    if (isatty(STDERR_FILENO) != 0) std::fputs("\n", stderr);  // after a line that shows what is under way
    _exit(128 + signal);
}

struct Pipe {
    Pipe() {
        if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
    }
    ~Pipe() {
        close_write();
        close(ends[0]);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    void close_write() {
        if (ends[1] >= 0) close(std::exchange(ends[1], -1));
    }
    std::array<int, 2> ends{};
};

std::string text_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

// Starts a command with its output in a pipe and its complaints in a file.
pid_t spawn(const std::vector<std::string>& command, const Pipe& output, const std::filesystem::path& complaints) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    const std::lock_guard lock(owned().mutex);
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("cannot start a process");
    if (pid > 0) {
        setpgid(pid, pid);  // the child does, too: whichever is first
        owned().processes.insert(pid);
        return pid;
    }
    // The child: only what is safe after fork.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(126);
    const sigset_t signals = ending_signals();
    sigprocmask(SIG_UNBLOCK, &signals, nullptr);
    signal(SIGPIPE, SIG_DFL);
    const int nothing = open("/dev/null", O_RDONLY);
    const int errors = open(complaints.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (nothing < 0 || errors < 0) _exit(126);
    dup2(nothing, STDIN_FILENO);
    dup2(output.ends[1], STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    constexpr std::string_view kWhat = "cannot be run\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kWhat.data(), kWhat.size());
    _exit(127);
}

// Waits for the end of a process, and ends its group at once when there is a deadline and it has passed.
int status_of(pid_t pid, std::optional<Clock::time_point> deadline = std::nullopt) {
    for (int status = 0;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
        const std::lock_guard lock(owned().mutex);
        if (waitpid(pid, &status, WNOHANG) != 0) {
            owned().processes.erase(pid);
            return status;
        }
        if (deadline && Clock::now() > *deadline) kill(-pid, SIGKILL);
    }
}

// The next line of a pipe, or nothing when it ends or time runs out.
std::string read_line(int descriptor, std::chrono::milliseconds patience) {
    const auto deadline = Clock::now() + patience;
    std::string line;
    for (char c = 0; c != '\n';) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd ready{descriptor, POLLIN, 0};
        if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) <= 0) return {};
        if (read(descriptor, &c, 1) != 1) return {};
        if (c != '\n') line += c;
    }
    return line;
}

}  // namespace

void end_on_signals() {
    signal(SIGPIPE, SIG_IGN);
    const sigset_t signals = ending_signals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::thread([signals] {
        int signal = 0;
        sigwait(&signals, &signal);
        end_everything(signal);
    }).detach();
}

std::string output_of(const std::vector<std::string>& command) {
    const ScratchDirectory scratch;
    Pipe output;
    const pid_t pid = spawn(command, output, scratch.path() / "stderr");
    output.close_write();
    std::string text;
    std::array<char, 1U << 16U> block;
    ssize_t got = 0;
    while ((got = read(output.ends[0], block.data(), block.size())) > 0)
        text.append(block.data(), static_cast<std::size_t>(got));
    if (const int status = status_of(pid); !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw std::runtime_error(command.front() + ": " + text_of(scratch.path() / "stderr"));
    return text;
}

ScratchDirectory::ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "rove-walk-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory like " + name);
    path_ = name;
    const std::lock_guard lock(owned().mutex);
    owned().directories.insert(path_);
}

ScratchDirectory::~ScratchDirectory() {
    const std::lock_guard lock(owned().mutex);
    owned().directories.erase(path_);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

NodeProcesses::NodeProcesses(std::filesystem::path rove, std::filesystem::path logs)
    : rove_(std::move(rove)), logs_(std::move(logs)) {}

NodeProcesses::~NodeProcesses() {
    {
        const std::lock_guard lock(owned().mutex);
        for (const pid_t process : processes_) kill(-process, SIGTERM);
    }
    const auto deadline = Clock::now() + kPatience;
    for (std::size_t index = 0; index < processes_.size(); ++index) {
        const int status = status_of(processes_[index], deadline);
        if (index < addresses_.size() && status != 0)
            std::fprintf(stderr, "node %zu did not end well (status %d):\n%s", index, status,
                         text_of(log_of(index)).c_str());
    }
}

const std::string& NodeProcesses::start(std::chrono::seconds patience) {
    const std::size_t index = addresses_.size();
    if (processes_.size() == kNodesMax) throw std::runtime_error("too many nodes");
    std::vector<std::string> command = {rove_.string(), "node", "--listen", "127.0.0.1:0"};
    if (index > 0) command.insert(command.end(), {"--join", addresses_.front()});
    Pipe output;
    processes_.push_back(spawn(command, output, log_of(index)));
    output.close_write();

    constexpr std::string_view kReady = "listening ";
    const std::string line = read_line(output.ends[0], patience);
    if (!line.starts_with(kReady))
        throw std::runtime_error("node " + std::to_string(index) + " does not listen; it says: " + line +
                                 text_of(log_of(index)));
    return addresses_.emplace_back(line.substr(kReady.size()));
}

std::filesystem::path NodeProcesses::log_of(std::size_t index) const {
    return logs_ / ("node-" + std::to_string(index) + ".log");
}

std::string NodeProcesses::complaints() const {
    const std::lock_guard lock(owned().mutex);  // not while a signal ends them
    std::string all;
    for (std::size_t index = 0; index < addresses_.size(); ++index) all += text_of(log_of(index));
    return all;
}

}  // namespace archive_walk
