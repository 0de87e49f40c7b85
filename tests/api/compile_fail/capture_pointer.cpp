// expect: rove: this lambda captures a pointer, a reference or `this`
#include "common.hpp"

int f(const int* pointer) {
    return some_peer().sync([pointer] { return *pointer; });
}
