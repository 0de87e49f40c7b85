// expect: rove: rove::when_any of no calls would never end
#include "common.hpp"

auto f() {
    return rove::when_any();
}
