// expect: rove: rove::when_any takes Calls that have names
#include <vector>

#include "common.hpp"

std::vector<rove::Call<int>> calls();
auto g() {
    return rove::when_any(calls());
}
