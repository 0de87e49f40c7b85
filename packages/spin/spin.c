/* Takes a core for some time, and touches no memory but its own counter: counts as far as the payload's number (8 bytes), and replies how many
 * calls there have been on this node. */
#include <rove/rove.h>
#include <stdatomic.h>
#include <string.h>

static _Atomic uint64_t calls;

ROVE_ENTRY void spin(rove_here* here, const void* payload, size_t size) {
    uint64_t steps = 0;
    if (size >= sizeof steps) memcpy(&steps, payload, sizeof steps);
    for (volatile uint64_t at = 0; at < steps; ++at) continue;
    const uint64_t before = atomic_fetch_add(&calls, 1);
    rove_reply(here, &before, sizeof before);
}
