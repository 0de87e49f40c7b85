/* The smallest function that does something: adds the payload's number (8 bytes; 1 where there is none) to a counter of the
 * node's and replies the sum. Three-Chains' Target-Side Increment. */
#include <rove/rove.h>
#include <string.h>

static int64_t counter;

ROVE_ENTRY void increment(rove_here* here, const void* payload, size_t size) {
    int64_t step = 1;
    if (size >= sizeof step) memcpy(&step, payload, sizeof step);
    counter += step;
    rove_reply(here, &counter, sizeof counter);
}
