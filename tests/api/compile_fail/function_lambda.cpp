// expect: rove: rove::fn is for functions; pass the lambda or functor itself
#include "common.hpp"

void f() {
    some_peer().sync(rove::fn<[](int x) { return x + 1; }>, 1);
}
