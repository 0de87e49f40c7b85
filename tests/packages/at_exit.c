// Handlers that are called later: at the package's end, when the process ends quickly, and when it forks.
#define _GNU_SOURCE
#include <pthread.h>
#include <rove/rove.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char* trail;
static int prepared, in_parent, in_child;

static void first(void) {
    strcat(trail, "first");
}
static void second(void) {
    strcat(trail, "second ");
}
static void end_with_nine(void) {
    _exit(9);
}
static void prepare(void) {
    ++prepared;
}
static void parent(void) {
    ++in_parent;
}
static void child(void) {
    ++in_child;
}

// For a node in the caller's own process: the payload is where the text is written, which takes 16 bytes.
ROVE_ENTRY void at_exit(rove_here* here, const void* payload, size_t size) {
    (void)size;
    memcpy(&trail, payload, sizeof trail);
    const int failed = atexit(first) | atexit(second);
    rove_reply(here, &failed, sizeof failed);
}

ROVE_ENTRY void ends_quickly(rove_here* here, const void* payload, size_t size) {
    (void)here, (void)payload, (void)size;
    quick_exit(at_quick_exit(end_with_nine) == 0 ? 8 : 7);
}

ROVE_ENTRY void at_fork(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    int status = pthread_atfork(prepare, parent, child);
    const pid_t forked = fork();
    if (forked == 0) _exit(in_child + 10 * prepared);
    waitpid(forked, &status, 0);
    const int counted = in_parent + 10 * prepared + 100 * (WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    rove_reply(here, &counted, sizeof counted);
}
