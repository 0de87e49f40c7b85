// expect: rove: an argument of this type cannot travel: it means something in one process only
#include <source_location>

#include "common.hpp"

void take(const std::source_location& /*value*/) {}
void f(const std::source_location& value) {
    some_peer().sync(rove::fn<take>, value);
}
