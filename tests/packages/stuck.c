/* Never returns. */
#include <rove/rove.h>
#include <unistd.h>

ROVE_ENTRY void stuck(rove_here* here, const void* payload, size_t size) {
    (void)here;
    (void)payload;
    (void)size;
    for (;;) pause();
}
