// Leaves much free memory behind, between small pieces that stay in use.
#include <rove/rove.h>
#include <stdlib.h>
#include <string.h>

#define PIECES 48
#define PIECE_BYTES (16UL << 20)

ROVE_ENTRY void hoard(rove_here* here, const void* payload, size_t size) {
    void* pieces[PIECES];
    (void)payload, (void)size;
    size_t used = 0;
    for (unsigned i = 0; i < PIECES; ++i) {
        pieces[i] = malloc(PIECE_BYTES);
        if (!pieces[i]) continue;
        memset(pieces[i], 1, PIECE_BYTES);
        used += PIECE_BYTES;
        void* volatile stays = malloc(4096);  // as what others have in use
        (void)stays;
    }
    for (unsigned i = 0; i < PIECES; ++i) free(pieces[i]);
    rove_reply(here, &used, sizeof used);
}
