#include "toolchain/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace rove::toolchain {

Result<Finished> run(const std::vector<std::string>& command, const std::string& debian_package) {
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
    Finished finished;
    std::array<char, 4096> piece{};
    for (ssize_t count = 0; (count = read(ends[0], piece.data(), piece.size())) != 0;) {
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) break;
        const std::size_t room = kOutputBytesMax - std::min(kOutputBytesMax, finished.output.size());
        finished.output.append(piece.data(), std::min(static_cast<std::size_t>(count), room));
    }
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return finished;
}

}  // namespace rove::toolchain
