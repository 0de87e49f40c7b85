// A function that asks for the end of the thread it runs on.
#include <pthread.h>
#include <rove/rove.h>

ROVE_ENTRY void cancel_itself(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    pthread_cancel(pthread_self());
    rove_reply(here, "ok", 2);
}

ROVE_ENTRY void answer(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    rove_reply(here, "ok", 2);
}
