// expect: rove: an argument of this type cannot travel: it, or what it contains, is read into one that is made empty
#include "common.hpp"

void take(const std::vector<Unmade>& /*named*/) {}
void f(const std::vector<Unmade>& named) {
    some_peer().sync(rove::fn<take>, named);
}
