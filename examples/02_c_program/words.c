/* words.c: a package. Counts the words of a text, and all that it has counted on this node. */
#include <ctype.h>
#include <rove/rove.h>
#include <stdatomic.h>

static atomic_long all; /* one on each node; several of its threads may be in here at once */

static int begins_word(const char* text, size_t at) {
    return !isspace((unsigned char)text[at]) && (at == 0 || isspace((unsigned char)text[at - 1]));
}

ROVE_ENTRY void words(rove_here* here, const void* payload, size_t size) {
    long counts[2] = {0, 0};
    for (size_t i = 0; i < size; ++i) counts[0] += begins_word(payload, i);
    if (counts[0] == 0) {
        rove_fail(here, "there is no word in it");
        return;
    }
    counts[1] = atomic_fetch_add(&all, counts[0]) + counts[0];
    rove_reply(here, counts, sizeof counts);
}
