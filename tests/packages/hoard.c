// Leaves much free memory behind, between small pieces that stay in use.
#include <rove/rove.h>
#include <stdlib.h>

#define PIECES 48
#define PIECE_BYTES (16UL << 20)

ROVE_ENTRY void hoard(rove_here* here, const void* payload, size_t size) {
    char* volatile pieces[PIECES];
    (void)payload, (void)size;
    size_t used = 0;
    for (unsigned i = 0; i < PIECES; ++i) {
        pieces[i] = malloc(PIECE_BYTES);
        if (!pieces[i]) continue;
        // volatile: the compiler leaves out what is written to memory that is freed unread
        for (size_t at = 0; at < PIECE_BYTES; at += 4096) ((volatile char*)pieces[i])[at] = 1;
        used += PIECE_BYTES;
    }
    // The beginning of each stays where it is, as what others have in use: else all of it were at the end of the heap, and went at once.
    for (unsigned i = 0; i < PIECES; ++i) pieces[i] = realloc(pieces[i], 4096);
    rove_reply(here, &used, sizeof used);
}
