// expect: rove: rove.hpp needs RTTI
// with: -fno-rtti
#include "rove/rove.hpp"

int f() {
    return 1;
}
