#include <rove/rove.h>

void nowhere_to_be_found(void);

ROVE_ENTRY void needy(rove_here* here, const void* payload, size_t size) {
    (void)here, (void)payload, (void)size;
    nowhere_to_be_found();
}
