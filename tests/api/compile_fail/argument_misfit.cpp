// expect: rove: an argument of this type does not fit
#include "common.hpp"

int add(int a, int b) {
    return a + b;
}
int f() {
    return some_peer().sync(rove::fn<add>, 1, std::string("two"));
}
