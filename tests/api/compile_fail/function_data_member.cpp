// expect: rove: rove::fn is for functions, and this is a data member
#include "common.hpp"

struct Point {
    int x = 0;
};
void f() {
    some_peer().sync(rove::fn<&Point::x>, Point{});
}
