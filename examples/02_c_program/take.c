/* take.c: a package for server.c. The payload is a long: how many apples to take. */
#include <rove/rove.h>
#include <string.h>

#include "stock.h"

ROVE_ENTRY void take(rove_here* here, const void* payload, size_t size) {
    struct stock* stock = rove_host_object(here);
    long wanted, left;
    if (stock == NULL || size != sizeof wanted) {
        rove_fail(here, "take needs a node with a stock, and a long");
        return;
    }
    memcpy(&wanted, payload, sizeof wanted);
    left = atomic_load(&stock->apples);
    do {
        if (wanted < 0 || wanted > left) {
            rove_fail(here, "there are not that many");
            return;
        }
    } while (!atomic_compare_exchange_weak(&stock->apples, &left, left - wanted));
    left -= wanted;
    rove_reply(here, &left, sizeof left);
}
