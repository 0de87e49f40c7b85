// expect: rove: an argument of this type cannot travel: it means something in one process only
#include <vector>

#include "common.hpp"

void take(const std::vector<int>::iterator& /*value*/) {}
void f(const std::vector<int>::iterator& value) {
    some_peer().sync(rove::fn<take>, value);
}
