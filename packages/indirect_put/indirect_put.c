/* Indirect Put (Two-Chains, figure 4): the payload is a key (8 bytes) and data; the key is looked up in a table on the node,
 * which gives the place that the data is copied to. Replies how many bytes were. Needs the interface bench_table. */
#include <rove/rove.h>
#include <string.h>

extern void* bench_table_place(uint64_t key, size_t size) ROVE_NOTHROW;

ROVE_ENTRY void indirect_put(rove_here* here, const void* payload, size_t size) {
    uint64_t key;
    if (size < sizeof key) {
        rove_fail(here, "a payload shorter than its key");
        return;
    }
    memcpy(&key, payload, sizeof key);
    const size_t bytes = size - sizeof key;
    void* place = bench_table_place(key, bytes);
    if (place == NULL) {
        rove_fail(here, "no place for the data");
        return;
    }
    memcpy(place, (const char*)payload + sizeof key, bytes);
    rove_reply(here, &bytes, sizeof bytes);
}
