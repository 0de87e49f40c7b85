// expect: rove: a result of this type cannot travel: it means something in one process only
#include <functional>

#include "common.hpp"

std::function<int()> make() {
    return [] { return 1; };
}
void f() {
    const auto work = some_peer().sync(rove::fn<make>);
}
