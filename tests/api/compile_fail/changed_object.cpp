// expect: rove: this member function is not const: the object that it changes is a copy on the other node, which is thrown away
#include "common.hpp"

struct Counter {
    int calls = 0;
    int count() { return ++calls; }
};

auto f() {
    return some_peer().sync(rove::fn<&Counter::count>, Counter{});
}
