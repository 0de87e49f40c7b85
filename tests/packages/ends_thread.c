// A function that ends the thread it runs on.
#include <pthread.h>
#include <rove/rove.h>
#include <stdlib.h>
#include <threads.h>
#include <unistd.h>

ROVE_ENTRY void end_thread(rove_here* here, const void* payload, size_t size) {
    (void)here, (void)payload, (void)size;
    pthread_exit(0);
}

ROVE_ENTRY void end_thread_of_c11(rove_here* here, const void* payload, size_t size) {
    (void)here, (void)payload, (void)size;
    thrd_exit(0);
}

ROVE_ENTRY void answer(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    rove_reply(here, "ok", 2);
}

static int give_seven(void* nothing) {
    (void)nothing;
    thrd_exit(7);
}

ROVE_ENTRY void detach_thread(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    int result[2] = {pthread_detach(pthread_self()), thrd_detach(thrd_current())};
    rove_reply(here, result, sizeof result);
}

// What a thread of its own gives back.
ROVE_ENTRY void result_of_thread(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    thrd_t thread;
    int result = 0;
    if (thrd_create(&thread, give_seven, 0) == thrd_success) thrd_join(thread, &result);
    rove_reply(here, &result, sizeof result);
}

static void speak(void) {
    (void)!write(2, "spoken at the end\n", 18);
}

ROVE_ENTRY void speak_at_the_end(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    int failed = atexit(speak);
    rove_reply(here, &failed, sizeof failed);
}
