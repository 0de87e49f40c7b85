// expect: rove: a function that takes further arguments (...), a volatile member function, or one for objects that go (&&)
#include "common.hpp"

struct Counts {
    int n = 0;
    int get() const volatile { return n; }
};

void f() {
    const int n = some_peer().sync(rove::fn<&Counts::get>, Counts());
}
