// expect: rove: rove.hpp needs C++20
// as: c++17
#include "rove/rove.hpp"

int f() {
    return 1;
}
