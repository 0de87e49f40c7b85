// Numbered work as a package: built with several VERSIONs under one name, so that several of them are about at once.
#include "work.h"

#include <rove/rove.h>
#include <stdlib.h>

// Records its run; then fails on purpose, goes on to the next stop, or answers.
ROVE_ENTRY void work(rove_here* here, const void* payload, size_t size) {
    struct life_head head;
    if (size < sizeof head) {
        rove_fail(here, "life: too short");
        return;
    }
    memcpy(&head, payload, sizeof head);
    if (size != sizeof head + head.body_bytes) {
        rove_fail(here, "life: not as long as it says");
        return;
    }
    if (!life_record(head.number, head.step, rove_node(here), VERSION)) {
        rove_fail(here, "life: the run was not recorded");
        return;
    }
    if (head.nap_us != 0) usleep(head.nap_us);
    if (head.on_purpose) {
        rove_fail(here, "life: on purpose");
        return;
    }
    struct life_answer answer = {head.number, 0, VERSION, rove_node(here), head.step, 0};
    if (head.left > 0) {
        unsigned char* next = malloc(size);
        if (next == NULL) {
            rove_fail(here, "life: no memory");
            return;
        }
        memcpy(next, payload, size);
        const uint32_t to = head.stops[head.step];
        ++head.step;
        --head.left;
        memcpy(next, &head, sizeof head);
        answer.error = rove_forward(here, to, next, size);
        free(next);
        if (answer.error == ROVE_OK) return;
    }
    answer.sum = life_sum((const char*)payload + sizeof head, head.body_bytes);
    rove_reply(here, &answer, sizeof answer);
}
