/* The yardstick of tests/torture/torture: runs the entry of wrap.c three times in one thread of one process, as a node would, and writes
 * each status to the descriptor that its first argument names. Each run begins with the usual floating-point state, as a call does. */
#include <fenv.h>
#include <pthread.h>
#include <rove/rove.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void run(rove_here*, const void*, size_t);

static int descriptor;
static int status;

int rove_reply(rove_here* here, const void* data, size_t size) {
    (void)here;
    (void)size;
    memcpy(&status, data, sizeof status);
    return 0;
}

static void* work(void* unused) {
    for (int i = 0; i < 3; ++i) {
        fesetenv(FE_DFL_ENV);
        run(0, 0, 0);
        dprintf(descriptor, "%d ", status);
    }
    return unused;
}

int main(int count, char** arguments) {
    pthread_t thread;
    pthread_attr_t attributes;
    if (count != 2) return 2;
    descriptor = atoi(arguments[1]);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 8 << 20);
    if (pthread_create(&thread, &attributes, work, 0)) return 2;
    pthread_join(thread, 0);
    _exit(0);
}
