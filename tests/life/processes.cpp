#include "processes.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "work.h"

namespace life {

using namespace std::chrono_literals;

Process::Process(const std::vector<std::string>& command, const std::string& files, int runs) {
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    const std::string out = files + ".out", err = files + ".log";
    const pid_t parent = getpid();
    // Until the child has handlers of its own: what is to end it is not for this process's.
    sigset_t ends, before;
    sigemptyset(&ends);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, number);
    pthread_sigmask(SIG_BLOCK, &ends, &before);
    pid_ = fork();
    if (pid_ != 0) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    setpgid(0, 0);  // Ctrl-C is for the parent, which ends the others
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 1);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
    dup2(runs, LIFE_RUNS_FD);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    execv(arguments[0], arguments.data());
    perror(arguments[0]);
    _exit(127);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(std::exchange(other.status_, std::nullopt)) {}
Process& Process::operator=(Process&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(status_, other.status_);
    return *this;
}

Process::~Process() {
    if (!runs()) return;
    signal(SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
}

std::optional<int> Process::ended() {
    int status = 0;
    if (runs() && waitpid(pid_, &status, WNOHANG) == pid_)
        status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return status_;
}

std::optional<int> Process::wait(std::chrono::milliseconds limit) {
    const auto until = Clock::now() + limit;
    while (!ended() && Clock::now() < until) std::this_thread::sleep_for(1ms);
    return status_;
}

void Process::signal(int number) const {
    if (runs()) ::kill(pid_, number);
}

std::string read_file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace life
