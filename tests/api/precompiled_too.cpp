#include "precompiled.hpp"

static int same(int x) {
    return x + 200;
}

int too(const rove::Peer& peer) {
#ifdef ROVE_BOTH
    return peer.sync(rove::fn<same>, 1);
#endif
    return peer.sync([](int x) { return x + same(-160); }, 2);
}
