/* A function that takes long: as many milliseconds as it is told. NUMBER makes each another package. */
#include <rove/rove.h>
#include <time.h>

#ifndef NUMBER
#define NUMBER 0
#endif

ROVE_ENTRY void sleeps(rove_here* here, const void* payload, size_t size) {
    const int milliseconds = *(const int*)payload;
    const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    (void)size;
    nanosleep(&time, 0);
    const int number = NUMBER;
    rove_reply(here, &number, sizeof number);
}
