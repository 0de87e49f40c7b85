// expect: rove: an argument of this type cannot travel: it means something in one process only
#include <atomic>

#include "common.hpp"

int load(const std::atomic<int>& number) {
    return number;
}
int f(const std::atomic<int>& number) {
    return some_peer().sync(rove::fn<load>, number);
}
