/* Fills a node's shard in bulk: one call brings thousands of vertices with their edges, or megabytes of text. */
#include <rove/rove.h>
#include <string.h>

#include "shard.h"

/* Adds the records of a payload, of `words` 32-bit words. What arrives is checked before it is believed. */
static const char* add_records(uint32_t records, uint32_t self, uint32_t nodes, const uint32_t* word, size_t words) {
    for (; records != 0; --records) {
        if (words < 2 || word[1] > words - 2) return "the payload ends within a vertex";
        if (word[0] % nodes != self) return "a vertex that lives on another node";
        if (shard_add(word[0], word + 2, word[1]) != 0) return "no such vertex, or no memory for its edges";
        words -= 2 + word[1];
        word += 2 + word[1];
    }
    return words == 0 ? NULL : "bytes after the last vertex";
}

ROVE_ENTRY void fill(rove_here* here, const void* payload, size_t size) {
    const struct fill_request* request = payload;
    const uint32_t nodes = rove_node_count(here);
    const char* wrong = NULL;
    if (size < sizeof *request || size % sizeof(uint32_t) != 0)
        wrong = "no fill_request";
    else if (request->nodes != nodes)
        wrong = "cut for another number of nodes";
    else if (request->reset && shard_reset(request->vertices, nodes) != 0)
        wrong = "no memory for the vertices";
    else
        wrong = add_records(request->records, rove_node(here), nodes, (const uint32_t*)(request + 1),
                            (size - sizeof *request) / sizeof(uint32_t));
    if (wrong != NULL) rove_fail(here, wrong);
}

ROVE_ENTRY void keep_text(rove_here* here, const void* payload, size_t size) {
    const struct keep_text_request* request = payload;
    if (size < sizeof *request)
        rove_fail(here, "no keep_text_request");
    else if (request->room != 0 && shard_text_reset(request->room) != 0)
        rove_fail(here, "no memory for the text");
    else if (shard_text_add(request + 1, size - sizeof *request) != 0)
        rove_fail(here, "more text than there is room for");
}

/* Which node this is and how many it knows of: the client waits until all have met. */
ROVE_ENTRY void roll_call(rove_here* here, const void* payload, size_t size) {
    (void)payload;
    (void)size;
    const uint32_t answer[2] = {rove_node(here), rove_node_count(here)};
    rove_reply(here, answer, sizeof answer);
}
