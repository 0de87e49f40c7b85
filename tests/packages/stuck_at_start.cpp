// Its constructor never returns.
#include <rove/rove.h>
#include <unistd.h>

namespace {

struct Stuck {
    Stuck() {
        (void)!write(2, "constructing\n", 13);
        for (;;) pause();
    }
};
Stuck stuck;

}  // namespace

extern "C" ROVE_ENTRY void at_start(rove_here* here, const void*, size_t) {
    rove_reply(here, &stuck, sizeof stuck);
}
