// Stateless: built with different ANSWERs, it is as many packages as wanted.
#include <rove/rove.h>

ROVE_ENTRY void plain(rove_here* here, const void* payload, size_t size) {
    const int answer = ANSWER;
    (void)payload, (void)size;
    rove_reply(here, &answer, sizeof answer);
}
