/* One node's shard of the archive. Built with `rove build --interface`: its names are what later functions link to. */
#include "shard.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct adjacency {
    uint64_t first; /* into `edges` */
    uint32_t count;
};

static uint32_t vertices_all;
static uint32_t node_count;
static struct adjacency* adjacencies; /* of vertex v: at v / node_count */
static shard_edge* edges;
static uint64_t edges_used, edges_room;
static char* text;
static uint64_t text_used, text_room;

struct marks {
    uint64_t walk;
    uint64_t last_used;
    uint8_t* of_vertex; /* NULL: this slot is free */
};
static struct marks walks[SHARD_WALKS_MAX];
static uint64_t uses;
static atomic_flag walks_lock = ATOMIC_FLAG_INIT; /* two walks may be here at once, on two threads */

int shard_reset(uint32_t vertices, uint32_t nodes) {
    if (vertices > SHARD_VERTICES_MAX || nodes == 0) return -1;
    free(adjacencies);
    free(edges);
    for (int i = 0; i < SHARD_WALKS_MAX; ++i) free(walks[i].of_vertex);
    memset(walks, 0, sizeof walks);
    adjacencies = NULL;
    edges = NULL;
    edges_used = edges_room = 0;
    vertices_all = vertices;
    node_count = nodes;
    if (vertices == 0) return 0;
    adjacencies = calloc(vertices / nodes + 1, sizeof *adjacencies);
    return adjacencies != NULL ? 0 : -1;
}

int shard_text_reset(uint64_t bytes) {
    free(text);
    text = bytes != 0 ? malloc(bytes) : NULL;
    text_used = 0;
    text_room = text != NULL ? bytes : 0;
    return text_room == bytes ? 0 : -1;
}

int shard_text_add(const void* added, uint64_t bytes) {
    if (bytes > text_room - text_used) return -1;
    if (bytes != 0) memcpy(text + text_used, added, bytes);
    text_used += bytes;
    return 0;
}

const char* shard_text(uint64_t* bytes) {
    *bytes = text_used;
    return text;
}

/* When the node ends. */
__attribute__((destructor)) static void forget(void) {
    shard_reset(0, 1);
    shard_text_reset(0);
}

int shard_add(uint32_t vertex, const shard_edge* added, uint32_t count) {
    if (vertex >= vertices_all || adjacencies == NULL) return -1;
    for (uint32_t i = 0; i < count; ++i)
        if (shard_edge_to(added[i]) >= vertices_all) return -1; /* walks index their marks by it */
    if (edges_used + count > edges_room) {
        const uint64_t room = 2 * edges_room + count + 4096;
        shard_edge* grown = realloc(edges, room * sizeof *grown);
        if (grown == NULL) return -1;
        edges = grown;
        edges_room = room;
    }
    if (count != 0) memcpy(edges + edges_used, added, count * sizeof *added);
    adjacencies[vertex / node_count] = (struct adjacency){edges_used, count};
    edges_used += count;
    return 0;
}

uint32_t shard_vertices(void) {
    return vertices_all;
}

const shard_edge* shard_edges(uint32_t vertex, uint32_t* count) {
    *count = 0;
    if (vertex >= vertices_all || adjacencies == NULL) return NULL;
    const struct adjacency* found = &adjacencies[vertex / node_count];
    *count = found->count;
    return found->count != 0 ? edges + found->first : NULL;
}

/* The slot of this walk, or the one that was used longest ago. The caller holds the lock. */
static struct marks* slot_of(uint64_t walk) {
    struct marks* oldest = &walks[0];
    for (int i = 0; i < SHARD_WALKS_MAX; ++i) {
        if (walks[i].of_vertex != NULL && walks[i].walk == walk) return &walks[i];
        if (walks[i].last_used < oldest->last_used) oldest = &walks[i];
    }
    return oldest;
}

uint8_t* shard_marks(uint64_t walk, int begun) {
    while (atomic_flag_test_and_set_explicit(&walks_lock, memory_order_acquire)) {
    }
    struct marks* slot = slot_of(walk);
    const int known = slot->of_vertex != NULL && slot->walk == walk;
    uint8_t* marks = NULL;
    if (known || !begun) {
        if (slot->of_vertex == NULL) slot->of_vertex = malloc(vertices_all);
        marks = slot->of_vertex;
        if (marks != NULL && !known) memset(marks, 0, vertices_all);
        slot->walk = walk;
        slot->last_used = ++uses;
    }
    atomic_flag_clear_explicit(&walks_lock, memory_order_release);
    return marks;
}
