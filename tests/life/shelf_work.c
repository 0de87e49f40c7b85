// Numbered work that links to the interface `shelf`: fails without having run where that is not loaded.
#include <rove/rove.h>

#include "work.h"

int life_shelf_label(void);

ROVE_ENTRY void shelf_work(rove_here* here, const void* payload, size_t size) {
    struct life_head head;
    if (size < sizeof head) {
        rove_fail(here, "life: too short");
        return;
    }
    memcpy(&head, payload, sizeof head);
    if (!life_record(head.number, head.step, rove_node(here), VERSION)) {
        rove_fail(here, "life: the run was not recorded");
        return;
    }
    const int label = life_shelf_label();
    if (label != 1 && label != 2) {
        rove_fail(here, "life: a label that no interface has");
        return;
    }
    const struct life_answer answer = {head.number, life_sum((const char*)payload + sizeof head, size - sizeof head),
                                       VERSION,     rove_node(here),
                                       head.step,   0};
    rove_reply(here, &answer, sizeof answer);
}
