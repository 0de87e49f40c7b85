// expect: rove: the function takes another number of arguments
#include "common.hpp"

int add(int a, int b) {
    return a + b;
}
int f() {
    return some_peer().sync(rove::fn<add>, 1);
}
