// expect: rove: an argument of this type cannot travel: it means something in one process only
#include <typeindex>

#include "common.hpp"

void take(const std::type_index& /*value*/) {}
void f(const std::type_index& value) {
    some_peer().sync(rove::fn<take>, value);
}
