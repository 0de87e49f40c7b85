#include <rove/rove.h>
#include <string.h>

extern long shelf_value;
long shelf_add(long n);
int shelf_label(void);

#ifndef SALT
#define SALT 0
#endif

// Adds the payload's number to the shelf; replies {label, value, salt}.
ROVE_ENTRY void put(rove_here* here, const void* payload, size_t size) {
    long n = 0;
    memcpy(&n, payload, size < sizeof n ? size : sizeof n);
    shelf_add(n);
    const long answer[3] = {shelf_label(), shelf_value, SALT};
    rove_reply(here, answer, sizeof answer);
}
