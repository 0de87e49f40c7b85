#include "toolchain/process.hpp"

#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "toolchain/files.hpp"

extern char** environ;

namespace rove::toolchain {

namespace {

constexpr std::array kEnds{SIGINT, SIGTERM, SIGHUP};
constexpr auto kWayOut = std::chrono::seconds(1);
std::atomic<int> came{0};  // of these, while somebody is Interruptible
sem_t something_came;      // one of them, or the end of who is Interruptible
std::atomic<pid_t> running{
    0};  // the program that run() runs; it is not reaped meanwhile, so nobody else has its number

void end_what_runs() {
    if (const pid_t child = running.load(); child != 0) (void)kill(child, SIGTERM);
}

void note(int number) {
    const int before = errno;
    came = number;
    end_what_runs();
    (void)sem_post(&something_came);
    errno = before;
}

}  // namespace

Interruptible::Interruptible() {
    (void)sem_init(&something_came, 0, 0);
    ends_at_last_ = std::thread([this] { end_at_last(); });
    struct sigaction action{};
    action.sa_handler = &note;
    for (std::size_t i = 0; i < kEnds.size(); ++i) {
        (void)sigaction(kEnds[i], nullptr, &before_[i]);
        if (before_[i].sa_handler != SIG_IGN) (void)sigaction(kEnds[i], &action, nullptr);
    }
}

void Interruptible::end_at_last() {
    while (sem_wait(&something_came) != 0) continue;
    if (is_over_.try_acquire_for(kWayOut)) return;
    TemporaryFolder::remove_all();
    const int number = came;
    (void)signal(number, SIG_DFL);
    (void)kill(getpid(), number);
}

Interruptible::~Interruptible() {
    is_over_.release();
    (void)sem_post(&something_came);
    ends_at_last_.join();
    for (std::size_t i = 0; i < kEnds.size(); ++i) (void)sigaction(kEnds[i], &before_[i], nullptr);
    if (const int number = came.exchange(0); number != 0) (void)raise(number);
}

Status not_interrupted() {
    if (came != 0) return fail(ErrorCode::cancelled, "ended: a signal came");
    return {};
}

Result<Finished> run(const std::vector<std::string>& command, const std::string& debian_package) {
    if (came != 0) return fail(ErrorCode::cancelled, "{} was not run: a signal came", command.front());
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
        return fail(ErrorCode::overloaded, "no pipe for {} ({})", command.front(), strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    pid_t child = 0;
    const int error = posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error != 0) {
        close(ends[0]);
        if (error == ENOENT)
            return fail(ErrorCode::unsupported,
                        "{} is not installed; install the Debian package {} (apt-get install {})", command.front(),
                        debian_package, debian_package);
        return fail(ErrorCode::failed, "{} cannot be started ({})", command.front(), strerror(error));
    }
    running = child;
    if (came != 0) end_what_runs();  // before it was known
    Finished finished;
    std::array<char, 4096> piece{};
    for (ssize_t count = 0; (count = read(ends[0], piece.data(), piece.size())) != 0;) {
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) break;
        const std::size_t room = kOutputBytesMax - std::min(kOutputBytesMax, finished.output.size());
        finished.output.append(piece.data(), std::min(static_cast<std::size_t>(count), room));
    }
    close(ends[0]);
    siginfo_t ended{};
    while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
    running = 0;
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (came != 0) return fail(ErrorCode::cancelled, "{} was ended: a signal came", command.front());
    finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return finished;
}

}  // namespace rove::toolchain
