// expect: in place of a rove::Peer take a rove::Here& and ask it: here.peer(id), here.caller()
#include "common.hpp"

auto f(const rove::Peer& peer) {
    return some_peer().sync([peer] { return peer.node(); });
}
