// expect: rove: an argument of this type cannot travel: it means something in one process only
#include <functional>

#include "common.hpp"

int run(std::function<int()> work) {
    return work();
}
int f(const std::function<int()>& work) {
    return some_peer().sync(rove::fn<run>, work);
}
