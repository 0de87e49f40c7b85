#include "linked.hpp"
#include "rove/rove.hpp"

static int six() {
    return 6;
}
int linked::sends_its_own(const rove::Peer& peer) {
    return peer.sync(rove::fn<six>);
}
// A name of zstd's, which nodes are linked with for their own use. Theirs is 10500 or so.
extern "C" unsigned ZSTD_versionNumber() {
    return 7;
}
int linked::left(int x) {
    return 2 * x;
}
