/* Hands out the edges of some vertices: how a walk is done by a client that does not send functions. */
#include <rove/rove.h>
#include <stdlib.h>
#include <string.h>

#include "shard.h"

#define REPLY_WORDS_MAX (224u * 1024 / 4) /* under the payload limit of 255 KiB */

ROVE_ENTRY void list(rove_here* here, const void* payload, size_t size) {
    const uint32_t* vertices = payload;
    uint32_t* reply = malloc(REPLY_WORDS_MAX * sizeof *reply);
    if (reply == NULL) {
        rove_fail(here, "no memory for a reply");
        return;
    }
    size_t used = 0;
    for (size_t i = 0; i < size / sizeof *vertices; ++i) {
        uint32_t count;
        const shard_edge* edges = shard_edges(vertices[i], &count);
        if (used + 1 + count > REPLY_WORDS_MAX) break; /* the client asks for the rest */
        reply[used++] = count;
        if (count != 0) memcpy(reply + used, edges, count * sizeof *edges);
        used += count;
    }
    rove_reply(here, reply, used * sizeof *reply);
    free(reply);
}
