// expect: rove: a function takes rove::Here as its first parameter, by reference
#include "common.hpp"

unsigned where(int offset, rove::Here& here) {
    return here.node() + static_cast<unsigned>(offset);
}
unsigned f() {
    return some_peer().sync(rove::fn<where>, 1);
}
