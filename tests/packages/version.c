// Two packages of one name: built with -DVERSION=1 and =2.
#include <rove/rove.h>

ROVE_ENTRY void version(rove_here* here, const void* payload, size_t size) {
    static int calls;
    (void)payload, (void)size;
    const int answer[2] = {VERSION, ++calls};
    rove_reply(here, answer, sizeof answer);
}
