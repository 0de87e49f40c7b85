// Takes a third, and computes otherwise from then on.
#include <fenv.h>
#include <rove/rove.h>

static volatile double one = 1, three = 3;
static double thirds[2];
static int taken;

ROVE_ENTRY void take_third(rove_here* here, const void* payload, size_t size) {
    (void)here, (void)payload, (void)size;
    thirds[taken++ % 2] = one / three;
    fesetround(FE_UPWARD);
}

// Replies with the last two.
ROVE_ENTRY void tell_thirds(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    rove_reply(here, thirds, sizeof thirds);
}
