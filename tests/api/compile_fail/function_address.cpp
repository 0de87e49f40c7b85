// expect: rove: the address of a function means nothing on another node; write rove::fn<f>
#include "common.hpp"

int square(int x) {
    return x * x;
}
void f() {
    (void)some_peer().async(square, 2);
}
