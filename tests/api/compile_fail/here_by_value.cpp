// expect: rove: a function takes rove::Here as its first parameter, by reference
#include "common.hpp"

unsigned where(rove::Here here) {
    return here.node();
}
unsigned f() {
    return some_peer().sync(rove::fn<where>);
}
