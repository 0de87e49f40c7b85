#include "linked.hpp"
#include "rove/rove.hpp"

static int six() {
    return 6;
}
int linked::sends_its_own(const rove::Peer& peer) {
    return peer.sync(rove::fn<six>);
}
int linked::left(int x) {
    return 2 * x;
}
