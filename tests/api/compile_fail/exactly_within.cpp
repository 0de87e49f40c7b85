// expect: rove: rove::exactly is for a call that a program makes by a rove::Peer
#include "common.hpp"

int square(int x);

int f(rove::Here& here) {
    return here.caller().sync(rove::exactly(rove::fn<square>), 3);
}
