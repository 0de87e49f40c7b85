/* What indirect_put reaches its data through: a hash table from keys to places in a block of memory, on the node. An interface:
 * code that is sent in every frame has no statics of its own. */
#include <rove/rove.h>

#define SLOTS 65536 /* a power of two */
#define BLOCK (16u << 20)

static uint64_t keys[SLOTS];
static uint32_t offsets[SLOTS];
static char block[BLOCK];
static uint64_t used;

/* The place of a key's data, `size` bytes; a new key gets the next one. NULL: the table is full, or the size too large. */
__attribute__((visibility("default"))) void* bench_table_place(uint64_t key, size_t size) {
    if (size > 65536) return 0;
    size_t at = (key * 0x9E3779B97F4A7C15u) >> 48;
    for (unsigned probes = 0; probes < SLOTS; ++probes, at = (at + 1) % SLOTS) {
        if (keys[at] == key + 1) return block + offsets[at];
        if (keys[at] != 0) continue;
        keys[at] = key + 1;
        offsets[at] = (uint32_t)(used++ * 64 % (BLOCK - 65536));
        return block + offsets[at];
    }
    return 0;
}
