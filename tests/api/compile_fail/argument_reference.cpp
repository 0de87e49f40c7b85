// expect: rove: a parameter that is a reference to something that can be changed
#include "common.hpp"

void increment(int& number) {
    ++number;
}
void f(int& number) {
    some_peer().sync(rove::fn<increment>, number);
}
