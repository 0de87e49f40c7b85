// Sends itself on to another node, and is slow there.
#include <rove/edge.h>
#include <rove/rove.h>
#include <unistd.h>

// Payload: a node's number, how many tenths of a second it takes there, and more.
ROVE_ENTRY void relay_slowly(rove_here* here, const void* payload, size_t size) {
    const unsigned char* what = payload;
    const unsigned char to = size > 1 ? what[0] : 0;
    if (to != rove_node(here)) {
        if (rove_forward(here, to, payload, size) != 0) rove_fail(here, "not forwarded");
        return;
    }
    for (unsigned tenths = what[1]; tenths > 0; --tenths) usleep(100 * 1000);
    rove_reply(here, &to, 1);
}

// Payload: a node's number, and more.
ROVE_ENTRY void relay(rove_here* here, const void* payload, size_t size) {
    const unsigned char to = size > 0 ? *(const unsigned char*)payload : 0;
    if (to != rove_node(here)) {
        if (rove_forward(here, to, payload, size) != 0) rove_fail(here, "not forwarded");
        return;
    }
    usleep(10 * 1000);
    rove_reply(here, &to, 1);
}

enum { kKeptMax = 8192 };
static rove_here* kept[kKeptMax];
static unsigned kept_count;

// As relay, but quick; and with a second byte it keeps the call there, until relay_release.
ROVE_ENTRY void relay_and_keep(rove_here* here, const void* payload, size_t size) {
    const unsigned char to = size > 0 ? *(const unsigned char*)payload : 0;
    if (to != rove_node(here)) {
        if (rove_forward(here, to, payload, size) != 0) rove_fail(here, "not forwarded");
        return;
    }
    if (size <= 1) {
        rove_reply(here, &to, 1);
        return;
    }
    const unsigned place = __atomic_fetch_add(&kept_count, 1, __ATOMIC_RELAXED);
    if (place < kKeptMax)
        __atomic_store_n(&kept[place], rove_keep(here), __ATOMIC_RELEASE);
    else
        rove_fail(here, "too many are kept");
}

// Ends all calls that relay_and_keep has kept on this node, and answers with their number, 4 bytes. Others may be kept while it runs.
ROVE_ENTRY void relay_release(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    unsigned released = 0;
    for (unsigned i = 0; i < kKeptMax; ++i) {
        rove_here* const one = __atomic_exchange_n(&kept[i], NULL, __ATOMIC_ACQUIRE);
        if (one == NULL) continue;
        rove_release(one);
        ++released;
    }
    rove_reply(here, &released, sizeof released);
}

// As relay, and answers with 64 KiB.
ROVE_ENTRY void relay_much(rove_here* here, const void* payload, size_t size) {
    static const char much[64 * 1024];
    const unsigned char to = size > 0 ? *(const unsigned char*)payload : 0;
    if (to != rove_node(here)) {
        if (rove_forward(here, to, payload, size) != 0) rove_fail(here, "not forwarded");
        return;
    }
    rove_reply(here, much, sizeof much);
}

// Payload: the numbers of the nodes that it goes to, one after the other. The last one answers.
ROVE_ENTRY void relay_along(rove_here* here, const void* payload, size_t size) {
    const unsigned char* path = payload;
    const unsigned char last = (unsigned char)rove_node(here);
    if (size == 0)
        rove_reply(here, &last, 1);
    else if (rove_forward(here, path[0], path + 1, size - 1) != 0)
        rove_fail(here, "not forwarded");
}
