// expect: rove: a result that points or refers to something on the other node
#include "common.hpp"

const char* name() {
    return "name";
}
const char* f() {
    return some_peer().sync(rove::fn<name>);
}
