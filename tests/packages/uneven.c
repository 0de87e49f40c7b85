/* Adds numbers, some of them slowly. */
#include <rove/rove.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static _Atomic uint64_t total, count;

/* The payload: a number, and how many ms to wait before it is added. */
ROVE_ENTRY void uneven(rove_here* here, const void* payload, size_t size) {
    uint64_t number_and_ms[2] = {0, 0};
    (void)here;
    memcpy(number_and_ms, payload, size < sizeof number_and_ms ? size : sizeof number_and_ms);
    if (number_and_ms[1] > 0) usleep((unsigned)number_and_ms[1] * 1000);
    atomic_fetch_add(&total, number_and_ms[0]);
    atomic_fetch_add(&count, 1);
}

/* Replies how many there were, and their sum. */
ROVE_ENTRY void sum(rove_here* here, const void* payload, size_t size) {
    (void)payload;
    (void)size;
    const uint64_t now[2] = {atomic_load(&count), atomic_load(&total)};
    rove_reply(here, now, sizeof now);
}
