// expect: rove: a constant cannot be shared
#include "common.hpp"

void f(rove::Node& node) {
    const int limit = 3;
    node.share("limit", limit);
}
