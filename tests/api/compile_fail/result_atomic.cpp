// expect: rove: a result of this type cannot travel
#include <atomic>

#include "common.hpp"

std::atomic<int> make() {
    return 1;
}
void f() {
    some_peer().async(rove::fn<make>).cancel();
}
