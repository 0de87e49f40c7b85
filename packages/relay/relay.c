/* Posts from within a function: the payload names a node and says how many posts of increment:increment it is to get (4 bytes each). Replies
 * the ns that all of them took here, or fails. The node must know increment. */
#include <rove/rove.h>
#include <string.h>
#include <time.h>

struct posts {
    rove_node_id node;
    uint32_t count;
};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

ROVE_ENTRY void relay(rove_here* here, const void* payload, size_t size) {
    struct posts posts;
    rove_function increment = 0;
    if (size != sizeof posts || rove_find(here, "increment:increment", &increment) != ROVE_OK) {
        rove_fail(here, "relay takes a node and a count, and needs increment");
        return;
    }
    memcpy(&posts, payload, sizeof posts);
    const int64_t step = 1;
    const uint64_t begin = now_ns();
    for (uint32_t i = 0; i < posts.count; ++i) {
        if (rove_post(here, posts.node, increment, &step, sizeof step) != ROVE_OK) {
            rove_fail(here, "a post could not be sent");
            return;
        }
    }
    const uint64_t took = now_ns() - begin;
    rove_reply(here, &took, sizeof took);
}
