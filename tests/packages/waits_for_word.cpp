// Waits for a word of the node's program, and tells it before.
#include <atomic>

#include "rove/rove.h"

ROVE_ENTRY void waits(rove_here* here, const void*, std::size_t) {
    auto& word = *static_cast<std::atomic<int>*>(rove_host_object(here));
    word = 1;
    word.wait(1);
    const int seen = word;
    rove_reply(here, &seen, sizeof seen);
}
