/* Waits for ever for a call of itself on another node. */
#include <rove/edge.h>

/* Payload: that node's number. */
ROVE_ENTRY void waits(rove_here* here, const void* payload, size_t size) {
    const unsigned char to = size > 0 ? *(const unsigned char*)payload : 0;
    rove_pending pending = {0};
    if (to == rove_node(here)) return;
    if (rove_here_call(here, to, &waits, payload, size, &pending) != ROVE_OK) {
        rove_fail(here, "not called");
        return;
    }
    (void)rove_pending_wait(&pending, -1);
    rove_pending_drop(&pending);
}
