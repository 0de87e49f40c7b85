// A function that leaves a thread behind, which runs its code for as long as the process lives.
#include <pthread.h>
#include <rove/rove.h>
#include <unistd.h>

static volatile unsigned long rounds;

static void* turn(void* nothing) {
    for (;; usleep(100)) ++rounds;
    return nothing;
}

ROVE_ENTRY void leave(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    pthread_t thread;
    if (pthread_create(&thread, 0, turn, 0) != 0) {
        rove_fail(here, "no thread");
        return;
    }
    pthread_detach(thread);
    rove_reply(here, 0, 0);
}
