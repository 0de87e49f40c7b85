// expect: rove: the function takes another number of arguments; pass all of them, because default arguments are not used
#include "common.hpp"

int add(int a, int b = 1) {
    return a + b;
}
int f() {
    return some_peer().sync(rove::fn<add>, 1);
}
