// expect: rove: an argument of this type cannot travel: it means something in one process only
#include <exception>

#include "common.hpp"

void take(const std::vector<std::exception_ptr>& /*value*/) {}
void f(const std::vector<std::exception_ptr>& value) {
    some_peer().sync(rove::fn<take>, value);
}
