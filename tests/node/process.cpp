#include "process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>

extern char** environ;

namespace rove::test {
namespace {

std::string from_environment(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : otherwise;
}

std::string read_all(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

int spawn(const std::vector<std::string>& command, const std::string& out, const std::string& err) {
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t pid = fork_or_throw();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves nothing behind
    if (getppid() != parent) _exit(127);
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), 1);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), 2);
    execvp(arguments[0], arguments.data());
    _exit(127);
}

int status_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string unique_name(const std::string& stem) {
    static std::atomic<int> number{0};
    return (scratch() / (stem + std::to_string(number++))).string();
}

// Waits for the end, or kills.
int reap(int pid, std::chrono::milliseconds limit) {
    if (pid <= 0) throw std::logic_error("reap: there is no process");  // 0 and -1 name many
    const auto until = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() > until) {
            ::kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return status_of(status);
}

}  // namespace

std::string built(const std::string& program) {
    return from_environment("ROVE_BUILD_DIR", "build/release") + "/bin/" + program;
}
std::string rove() {
    return built("rove");
}
std::filesystem::path source_folder() {
    return from_environment("ROVE_SOURCE_DIR", ".");
}

const std::filesystem::path& scratch() {
    struct Folder {
        std::filesystem::path path;
        pid_t maker = getpid();
        Folder() {
            std::string name = (std::filesystem::temp_directory_path() / "rove-test-XXXXXX").string();
            path = mkdtemp(name.data());
            // The tests' own cookie: nothing of the user's is read or made.
            setenv("ROVE_COOKIE", (path / "cookie").c_str(), 1);
        }
        ~Folder() {
            if (getpid() != maker) return;  // the child of a fork, which ends as programs do
            std::error_code ignored;
            std::filesystem::remove_all(path, ignored);
        }
    };
    static const Folder folder;
    return folder.path;
}

pid_t fork_or_throw() {
    const pid_t pid = fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    return pid;
}

Ran run(const std::vector<std::string>& command, std::chrono::seconds limit) {
    const std::string out = unique_name("out"), err = unique_name("err");
    const int status = reap(spawn(command, out, err), limit);
    return {status, read_all(out), read_all(err)};
}

std::string package(const std::string& source, const std::vector<std::string>& flags, const std::string& name) {
    static std::map<std::string, std::string> built;
    std::string key = source + "|" + name;
    for (const std::string& flag : flags) key += "|" + flag;
    if (const auto known = built.find(key); known != built.end()) return known->second;
    const std::string path = unique_name("package") + ".rove";
    std::vector<std::string> command{rove(), "build", (source_folder() / "tests/packages" / source).string(), "-o",
                                     path};
    command.insert(command.end(), flags.begin(), flags.end());
    if (!name.empty()) command.insert(command.end(), {"--name", name});
    const Ran ran = run(command);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return built[key] = path;
}

NodeProcess::NodeProcess(std::vector<std::string> options, const std::string& listen) {
    const std::string out = unique_name("node-out");
    log_file_ = unique_name("node-log");
    std::vector<std::string> command{rove(), "node", "--listen", listen};
    command.insert(command.end(), options.begin(), options.end());
    pid_ = spawn(command, out, log_file_);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < until) {
        const std::string text = read_all(out);
        if (text.starts_with("listening ") && text.ends_with("\n")) {
            address_ = text.substr(10, text.size() - 11);
            return;
        }
        int status = 0;
        if (waitpid(pid_, &status, WNOHANG) == pid_) {
            pid_ = -1;
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (pid_ > 0) reap(std::exchange(pid_, -1), std::chrono::seconds(0));
    throw std::runtime_error("the node does not listen: " + log());
}

NodeProcess::NodeProcess(NodeProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), address_(std::move(other.address_)), log_file_(std::move(other.log_file_)) {}

NodeProcess::~NodeProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    reap(pid_, std::chrono::seconds(5));
}

std::string NodeProcess::log() const {
    return read_all(log_file_);
}
void NodeProcess::signal(int number) const {
    // kill(-1) would reach every process of this user.
    if (pid_ <= 0) throw std::logic_error("signal: the node has ended, or was moved from");
    ::kill(pid_, number);
}

void NodeProcess::stop() const {
    signal(SIGSTOP);
    int status = 0;
    waitpid(pid_, &status, WUNTRACED);
}

int NodeProcess::wait() {
    return reap(std::exchange(pid_, -1), std::chrono::seconds(10));
}

void NodeProcess::kill_now() {
    signal(SIGKILL);
    (void)wait();
}

}  // namespace rove::test
