// expect: rove: a result of this type cannot travel: it, or what it contains, is read into one that is made empty
#include "common.hpp"

Unmade make() {
    return Unmade("x");
}
void f() {
    some_peer().async(rove::fn<make>).cancel();
}
