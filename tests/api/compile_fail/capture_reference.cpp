// expect: rove: this lambda captures a pointer, a reference or `this`
#include "common.hpp"

int f(int& number) {
    return some_peer().sync([&number] { return number; });
}
