// A function that prints, in its node's process.
#include <rove/rove.h>
#include <stdio.h>

ROVE_ENTRY void print(rove_here* here, const void* payload, size_t size) {
    printf("%.*s\n", (int)size, (const char*)payload);
    rove_reply(here, 0, 0);
}
