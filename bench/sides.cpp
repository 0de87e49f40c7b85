#include "bench/sides.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "bench/machine.hpp"
#include "rove/error.hpp"

namespace rove::bench {

Child::Child(const std::vector<std::string>& command, int core, const std::vector<std::string>& environment,
             const std::string& errors) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw Error(ErrorCode::overloaded, std::string("no pipe: ") + strerror(errno));
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) throw Error(ErrorCode::overloaded, std::string("no process: ") + strerror(errno));
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing stays behind, not even after a kill -9
        if (getppid() != parent) _exit(127);
        pin_to(core);
        for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
        if (dup2(ends[1], 1) < 0) _exit(127);
        const int nowhere = open("/dev/null", O_RDWR);
        const int complaints = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (nowhere < 0 || complaints < 0) _exit(127);
        dup2(nowhere, 0);
        dup2(complaints, 2);
        execvp(arguments[0], arguments.data());
        _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
}

Child::~Child() {
    if (pid_ > 0) {
        kill(pid_, SIGTERM);
        for (int tries = 0; tries < 300 && pid_ > 0; ++tries) {
            if (waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
            if (pid_ > 0) usleep(10'000);
        }
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
    }
    if (output_ >= 0) close(output_);
}

std::string Child::read_line() {
    std::string line;
    for (char c = 0; read(output_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
}

std::string Child::read_all() {
    std::string all;
    char piece[4096];
    for (ssize_t got = 0; (got = read(output_, piece, sizeof piece)) > 0;)
        all.append(piece, static_cast<std::size_t>(got));
    return all;
}

int Child::wait() {
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace rove::bench
