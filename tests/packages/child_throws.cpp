// A function that forks, and whose child lets an exception out. Answers with the child's exit status; -1: a signal ended it, or nothing.
#include <rove/rove.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

ROVE_ENTRY void child_throws(rove_here* here, const void*, size_t) {
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        throw std::runtime_error("child");
    }
    int status = 0;
    for (int tries = 0; tries < 1000 && waitpid(child, &status, WNOHANG) != child; ++tries) usleep(10'000);
    const int result = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    rove_reply(here, &result, sizeof result);
}
