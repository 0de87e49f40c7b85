// A function that fails without a reason: NULL, or an empty one.
#include <rove/rove.h>

ROVE_ENTRY void fail_without_a_word(rove_here* here, const void* payload, size_t size) {
    (void)payload;
    rove_fail(here, size > 0 ? "" : NULL);
}
