/* A walk that sends itself on: the transitive closure of one vertex, its size and its depth.
 *
 * It goes level by level, so the depth it finds is exact. A visit to a node expands the vertices of this level that
 * live there; what they lead to is listed for the next level. While other nodes have vertices to expand at this level
 * the function forwards itself to one of them; then it takes the next level. When nothing is left it goes round the
 * nodes once more, gathers what was reached, and the last of them answers the first caller.
 *
 * A vertex is listed at most once by each node and expanded once, on its own node; a visit needs at most one hop for
 * each node and level. Whatever does not fit (hops, the payload, marks that a node dropped) ends the call with an
 * error: a walk's answer is complete or there is none.
 */
#include <rove/rove.h>
#include <stdlib.h>
#include <string.h>

#include "shard.h"

/* With kRecommends it would find what is recommended as well. */
static const uint32_t followed = kDepends | kPreDepends;

enum { kListed = 1, kReached = 2 };

/* What fits a payload of 255 KiB after the head. */
#define VERTICES_CARRIED_MAX ((uint32_t)((255 * 1024 - sizeof(struct walk_state)) / sizeof(uint32_t)))

struct visit {
    rove_here* here;
    struct walk_state state;
    uint32_t *now, *next; /* room for VERTICES_CARRIED_MAX each */
    uint8_t* message;     /* room for a payload */
    uint8_t* marks;
    uint32_t self, nodes;
};

static const char* expand(struct visit* visit, uint32_t vertex) {
    uint8_t* marks = visit->marks;
    if (marks[vertex] & kReached) return NULL;
    marks[vertex] |= kReached;
    visit->state.depth = visit->state.level;
    uint32_t count;
    const shard_edge* edges = shard_edges(vertex, &count);
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t to = shard_edge_to(edges[i]);
        if (!(shard_edge_kinds(edges[i]) & followed) || marks[to]) continue;
        if (visit->state.now_count + visit->state.next_count == VERTICES_CARRIED_MAX)
            return "the walk is too wide: one level of it passes the payload limit";
        marks[to] |= kListed;
        visit->next[visit->state.next_count++] = to;
    }
    return NULL;
}

/* Expands this node's vertices of the level and keeps those of others in `now`. */
static const char* expand_own(struct visit* visit) {
    const uint32_t all = visit->state.now_count;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all; ++i) {
        const uint32_t vertex = visit->now[i];
        if (vertex % visit->nodes != visit->self) {
            visit->now[kept++] = vertex;
            continue;
        }
        const char* wrong = expand(visit, vertex);
        if (wrong != NULL) return wrong;
    }
    visit->state.now_count = kept;
    return NULL;
}

static const char* send_on(struct visit* visit, uint32_t node) {
    struct walk_state* state = &visit->state;
    const size_t now_bytes = state->now_count * sizeof(uint32_t), next_bytes = state->next_count * sizeof(uint32_t);
    const size_t size = sizeof *state + now_bytes + next_bytes;
    state->bytes += size;
    memcpy(visit->message, state, sizeof *state);
    memcpy(visit->message + sizeof *state, visit->now, now_bytes);
    memcpy(visit->message + sizeof *state + now_bytes, visit->next, next_bytes);
    switch (rove_forward(visit->here, node, visit->message, size)) {
        case ROVE_OK: return NULL;
        case ROVE_INVALID: return "the walk cannot go on: it is deeper than a call's hops, or a node has left";
        case ROVE_OVERLOADED: return "the walk cannot go on: the next node takes nothing at the moment";
        default: return "the walk cannot go on: the next node cannot be reached";
    }
}

/* Adds what was reached here to `now`, which holds what was reached elsewhere; goes on, or answers. */
static const char* gather(struct visit* visit) {
    struct walk_state* state = &visit->state;
    for (uint32_t vertex = visit->self; vertex < shard_vertices(); vertex += visit->nodes) {
        if (!(visit->marks[vertex] & kReached)) continue;
        if (state->now_count == VERTICES_CARRIED_MAX) return "the closure passes the payload limit";
        visit->now[state->now_count++] = vertex;
    }
    if (--state->gather_left != 0) return send_on(visit, (visit->self + 1) % visit->nodes);
    const struct walk_answer answer = {state->bytes, state->depth, state->now_count};
    const size_t bytes = state->now_count * sizeof(uint32_t);
    memcpy(visit->message, &answer, sizeof answer);
    memcpy(visit->message + sizeof answer, visit->now, bytes);
    rove_reply(visit->here, visit->message, sizeof answer + bytes);
    return NULL;
}

static const char* go(struct visit* visit) {
    struct walk_state* state = &visit->state;
    while (state->gather_left == 0) {
        const char* wrong = expand_own(visit);
        if (wrong != NULL) return wrong;
        if (state->now_count != 0) return send_on(visit, visit->now[0] % visit->nodes);
        if (state->next_count == 0) {
            state->gather_left = visit->nodes;
            break;
        }
        uint32_t* const done = visit->now;
        visit->now = visit->next;
        visit->next = done;
        state->now_count = state->next_count;
        state->next_count = 0;
        ++state->level;
    }
    return gather(visit);
}

/* Takes the payload in, checked before it is believed. */
static const char* arrive(struct visit* visit, const void* payload, size_t size) {
    struct walk_state* state = &visit->state;
    if (size < sizeof *state) return "no walk_state";
    memcpy(state, payload, sizeof *state);
    const uint64_t carried = (uint64_t)state->now_count + state->next_count;
    if (carried > VERTICES_CARRIED_MAX || size != sizeof *state + carried * sizeof(uint32_t)) return "no walk_state";
    const uint32_t* vertices = (const uint32_t*)((const struct walk_state*)payload + 1);
    for (uint64_t i = 0; i < carried; ++i)
        if (vertices[i] >= shard_vertices()) return "no such vertex";
    memcpy(visit->now, vertices, state->now_count * sizeof *vertices);
    memcpy(visit->next, vertices + state->now_count, state->next_count * sizeof *vertices);

    if (visit->nodes > 32) return "the walk keeps one bit for each node: 32 nodes at most";
    const uint32_t bit = 1u << visit->self;
    visit->marks = shard_marks(state->walk, (state->begun & bit) != 0);
    if (visit->marks == NULL) return "this node has no marks of the walk: too many walks at once, or no memory";
    state->begun |= bit;
    return NULL;
}

ROVE_ENTRY void walk(rove_here* here, const void* payload, size_t size) {
    const size_t list_bytes = VERTICES_CARRIED_MAX * sizeof(uint32_t);
    struct visit visit = {.here = here, .self = rove_node(here), .nodes = rove_node_count(here)};
    visit.now = malloc(2 * list_bytes + 255 * 1024);
    if (visit.now == NULL) {
        rove_fail(here, "no memory for the walk's lists");
        return;
    }
    void* const block = visit.now;
    visit.next = visit.now + VERTICES_CARRIED_MAX;
    visit.message = (uint8_t*)(visit.next + VERTICES_CARRIED_MAX);
    const char* wrong = arrive(&visit, payload, size);
    if (wrong == NULL) wrong = go(&visit);
    if (wrong != NULL) rove_fail(here, wrong);
    free(block);
}
