#include "process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <system_error>

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

std::string unique_name(const std::string& stem) {
    static std::atomic<int> number{0};
    return (scratch() / (stem + std::to_string(number++))).string();
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
    (void)scratch();
    Result<Process> process = Process::start(command, {.err = ProcessOptions::kPipe});
    if (!process) return {.status = 127, .out = {}, .err = process.error().message()};
    return process->communicate(Clock::now() + limit);
}

std::string package(const std::string& source, const std::vector<std::string>& flags, const std::string& name) {
    if (source == "basics.c" && flags.empty() && name.empty())  // the build has made it (CMakeLists.txt)
        return from_environment("ROVE_BUILD_DIR", "build/release") + "/packages/basics.rove";
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

NodeProcess::NodeProcess(std::vector<std::string> options, const std::string& listen)
    : log_file_(unique_name("node-log")) {
    std::vector<std::string> command{rove(), "node", "--listen", listen};
    command.insert(command.end(), options.begin(), options.end());
    const Descriptor log_to = value_or_throw(open_for_output(log_file_));
    process_ = value_or_throw(Process::start(command, {.err = log_to.number(), .grace = std::chrono::seconds(5)}));
    const std::string line = process_.read_line(Clock::now() + std::chrono::seconds(20));
    if (!line.starts_with("listening ")) {
        (void)process_.kill();
        throw std::runtime_error("the node does not listen: " + log());
    }
    address_ = line.substr(10);
}

std::string NodeProcess::log() const {
    return read_all(log_file_);
}
void NodeProcess::signal(int number) const {
    if (process_.pid() < 0) throw std::logic_error("signal: the node has ended, or was moved from");
    process_.signal(number);
}

void NodeProcess::stop() const {
    signal(SIGSTOP);
    siginfo_t stopped{};
    (void)waitid(P_PID, static_cast<id_t>(pid()), &stopped, WSTOPPED | WEXITED | WNOWAIT);
}

int NodeProcess::wait() {
    if (process_.pid() < 0) throw std::logic_error("wait: the node has ended, or was moved from");
    Process ended = std::move(process_);
    const std::optional<int> status = ended.wait(Clock::now() + std::chrono::seconds(10));
    return status ? *status : ended.kill();
}

void NodeProcess::kill_now() {
    signal(SIGKILL);
    (void)wait();
}

}  // namespace rove::test
