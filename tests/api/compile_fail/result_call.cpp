// expect: rove: a result of this type cannot travel: it means something in one process only
#include "common.hpp"

rove::Call<int> begin(rove::Here& here) {
    return here.caller().async([](int number) { return number; }, 1);
}
void f() {
    some_peer().sync(rove::fn<begin>);
}
