// A package without an image: it has assembly outside of functions.
#include <rove/rove.h>

__asm__(".set a_constant_of_assembly, 5");

ROVE_ENTRY void go(rove_here* here, const void* payload, size_t size) {
    (void)payload;
    (void)size;
    rove_reply(here, "x", 1);
}
