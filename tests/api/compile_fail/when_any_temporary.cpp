// expect: rove: rove::when_any takes Calls that have names
#include "common.hpp"

int f() {
    return 1;
}
auto g() {
    return rove::when_any(some_peer().async(rove::fn<f>), some_peer().async(rove::fn<f>));
}
