// expect: rove: a result of this type cannot travel: cereal reads it, or a type in it, into a default-constructed object
#include "common.hpp"

Unmade make() {
    return Unmade("x");
}
void f() {
    some_peer().async(rove::fn<make>).cancel();
}
