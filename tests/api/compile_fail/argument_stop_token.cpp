// expect: rove: an argument of this type cannot travel: it means something in one process only
#include <stop_token>

#include "common.hpp"

void take(const std::stop_token& /*value*/) {}
void f(const std::stop_token& value) {
    some_peer().sync(rove::fn<take>, value);
}
