/* The interface of the demo: what one node holds of the archive, and the payloads of the functions that use it.
 *
 * `shard.c` is loaded on every node under one name; each node's copy has data of its own. The functions that arrive
 * later (fill, walk, list, and the C++ lambdas of search.cpp) link to these names. Vertices are packages, numbered 0…n-1 by the client; vertex v lives on
 * the node v % rove_node_count(here).
 */
#ifndef ARCHIVE_WALK_SHARD_H
#define ARCHIVE_WALK_SHARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An edge is the vertex it leads to, and a bit for each field of the package that names it. */
typedef uint32_t shard_edge;
enum { kDepends = 1, kPreDepends = 2, kRecommends = 4 };
#define SHARD_VERTICES_MAX (1u << 28)
static inline uint32_t shard_edge_to(shard_edge edge) {
    return edge & (SHARD_VERTICES_MAX - 1);
}
static inline uint32_t shard_edge_kinds(shard_edge edge) {
    return edge >> 28;
}
static inline shard_edge shard_edge_make(uint32_t to, uint32_t kinds) {
    return to | kinds << 28;
}

/* Forgets all and makes room for this node's part of `vertices` vertices over `nodes` nodes; of none, it only forgets.
 * 0, or -1: no memory, or too many. */
int shard_reset(uint32_t vertices, uint32_t nodes);
/* Adds a vertex of this node with its edges, which are copied. 0, or -1: no memory, or no such vertex. */
int shard_add(uint32_t vertex, const shard_edge* edges, uint32_t count);
/* How many vertices the whole graph has. */
uint32_t shard_vertices(void);
/* The edges of a vertex of this node; none for any other. Valid until the next shard_reset. */
const shard_edge* shard_edges(uint32_t vertex, uint32_t* count);

/* What a walk remembers here between its visits: a byte per vertex of the graph, all zero at the first visit. NULL: no
 * memory; or `begun` and this node has forgotten it, because SHARD_WALKS_MAX others came since. */
#define SHARD_WALKS_MAX 8
uint8_t* shard_marks(uint64_t walk, int begun);

/* Makes room for this node's part of the archive's text, and forgets what was kept before. 0, or -1: no memory. */
int shard_text_reset(uint64_t bytes);
/* Appends to it; only the client that fills the node calls these two. 0, or -1: no room. */
int shard_text_add(const void* text, uint64_t bytes);
/* This node's stanzas, whole ones, as the archive has them. Valid until the next shard_text_reset. */
const char* shard_text(uint64_t* bytes);

/* ---- Payloads. All numbers are little-endian, as on both targets. ---- */

/* fill: `records` times (vertex, count, count edges). Before the first of them with `reset`: shard_reset. */
struct fill_request {
    uint32_t vertices;
    uint32_t nodes;
    uint32_t reset;
    uint32_t records;
};

/* keep_text: this head and then text. Before the first part, with `room` not 0: shard_text_reset. */
struct keep_text_request {
    uint64_t room;
};

/* walk: this head and then `now_count + next_count` vertices. The client sends one with the start as only vertex. */
struct walk_state {
    uint64_t walk;        /* the walk's number; no two are alike */
    uint32_t level;       /* how far from the start the vertices of `now` are */
    uint32_t depth;       /* how far the farthest vertex is that was reached */
    uint32_t now_count;   /* vertices that other nodes have still to expand at this level … */
    uint32_t next_count;  /* … and those that are listed for the next one; both may hold vertices reached before */
    uint32_t begun;       /* bit n: node n keeps marks of this walk */
    uint32_t gather_left; /* the walk has ended, and this many nodes have still to add what they reached; else 0 */
    uint64_t bytes;       /* what this walk has sent from node to node, its own measure of its cost */
};
/* … and its answer: this and then `reached` vertices, the start among them. */
struct walk_answer {
    uint64_t bytes;
    uint32_t depth;
    uint32_t reached;
};

/* list: vertices; the reply: for as many of them as fit, in their order, (count, count edges). */

#ifdef __cplusplus
}
#endif

#endif /* ARCHIVE_WALK_SHARD_H */
