// A thread-local variable, with a value to begin with.
#include <rove/rove.h>

static _Thread_local long calls = 41;

ROVE_ENTRY void local(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    ++calls;
    rove_reply(here, &calls, sizeof calls);
}
