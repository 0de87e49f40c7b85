// Large: its code comes in many pieces. The folder of fat.bin is given with --embed-dir.
#include <rove/rove.h>

static const unsigned char kFat[] = {
#embed "fat.bin"
};

ROVE_ENTRY void fat(rove_here* here, const void* payload, size_t size) {
    (void)payload;
    const unsigned char byte = kFat[size * 7919];
    rove_reply(here, &byte, sizeof byte);
}
