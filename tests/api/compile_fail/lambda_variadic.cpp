// expect: rove: a function that takes further arguments (...), a volatile member function, or one for objects that go (&&)
#include "common.hpp"

void f() {
    some_peer().post([](int, ...) {}, 3);
}
