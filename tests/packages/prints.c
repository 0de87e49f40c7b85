// Functions that print, in their node's process.
#include <rove/rove.h>
#include <stdio.h>
#include <unistd.h>

ROVE_ENTRY void print(rove_here* here, const void* payload, size_t size) {
    printf("%.*s\n", (int)size, (const char*)payload);
    rove_reply(here, 0, 0);
}

ROVE_ENTRY void print_later(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    rove_reply(here, 0, 0);
    sleep(1);
    printf("later\n");
}
