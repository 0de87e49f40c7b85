// Functions that start a process, send it SIGTERM, and answer with the signal that ended it: 0 where none has within ten seconds.
#define _GNU_SOURCE
#include <rove/rove.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int end(pid_t child) {
    int status = 0;
    kill(child, SIGTERM);
    for (int tries = 0; tries < 1000; ++tries, usleep(10000))
        if (waitpid(child, &status, WNOHANG) == child) return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return 0;
}

ROVE_ENTRY void end_fork(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
    }
    const int signal = end(child);
    rove_reply(here, &signal, sizeof signal);
}

ROVE_ENTRY void end_program(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    pid_t child = -1;
    char name[] = "sleep", time[] = "60";
    char *const arguments[] = {name, time, 0}, *const none[] = {0};
    const int signal = posix_spawnp(&child, name, 0, 0, arguments, none) == 0 ? end(child) : -1;
    rove_reply(here, &signal, sizeof signal);
}
