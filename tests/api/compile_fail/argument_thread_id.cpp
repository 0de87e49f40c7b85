// expect: rove: an argument of this type cannot travel: it means something in one process only
#include <thread>

#include "common.hpp"

void take(const std::thread::id& /*value*/) {}
void f(const std::thread::id& value) {
    some_peer().sync(rove::fn<take>, value);
}
