// expect: rove: an argument of this type cannot travel: it means something in one process only
#include <functional>

#include "common.hpp"

void take(const std::reference_wrapper<int>& /*value*/) {}
void f(const std::reference_wrapper<int>& value) {
    some_peer().sync(rove::fn<take>, value);
}
