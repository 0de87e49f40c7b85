// expect: rove: a result of this type cannot travel: it means something in one process only
#include <atomic>

#include "common.hpp"

std::atomic<int> make() {
    return 1;
}
void f() {
    some_peer().async(rove::fn<make>).cancel();
}
