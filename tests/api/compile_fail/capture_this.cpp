// expect: rove: this lambda captures a pointer, a reference or `this`
#include "common.hpp"

struct Something {
    int value = 1;
    int f() {
        return some_peer().sync([this] { return value; });
    }
};
int g() {
    return Something().f();
}
