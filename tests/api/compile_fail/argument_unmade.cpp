// expect: rove: an argument of this type cannot travel: cereal reads it, or a type in it, into a default-constructed object
#include "common.hpp"

void take(const Unmade& /*named*/) {}
void f(const Unmade& named) {
    some_peer().sync(rove::fn<take>, named);
}
