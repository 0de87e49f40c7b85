// expect: rove: a function that takes further arguments (...), a volatile member function, or one for objects that go (&&)
#include "common.hpp"

int sum(int count, ...);

void f() {
    const int all = some_peer().sync(rove::fn<sum>, 3);
}
