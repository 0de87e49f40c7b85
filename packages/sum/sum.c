/* Server-Side Sum (Two-Chains): adds the payload's 64-bit integers, stores the result at the next place of an array on the
 * node, and replies it. `sums` replies how many there have been and the last one. */
#include <rove/rove.h>

#define PLACES 256

static int64_t results[PLACES];
static uint64_t count;

ROVE_ENTRY void sum(rove_here* here, const void* payload, size_t size) {
    const int64_t* numbers = payload;
    int64_t total = 0;
    for (size_t i = 0; i < size / sizeof *numbers; ++i) total += numbers[i];
    results[count++ % PLACES] = total;
    rove_reply(here, &total, sizeof total);
}

ROVE_ENTRY void sums(rove_here* here, const void* payload, size_t size) {
    (void)payload;
    (void)size;
    int64_t told[2] = {(int64_t)count, count > 0 ? results[(count - 1) % PLACES] : 0};
    rove_reply(here, told, sizeof told);
}
