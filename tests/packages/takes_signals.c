// A function that takes its node's signals for itself.
#include <rove/rove.h>
#include <signal.h>

ROVE_ENTRY void ignore_ends(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    signal(SIGTERM, SIG_IGN);
    rove_reply(here, "ok", 2);
}
