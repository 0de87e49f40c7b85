// Two functions under one id: such a program does not begin.
#include "rove/rove.hpp"

int first(int x) {
    return x;
}
int second(int x) {
    return x;
}

int main() {
    rove::offer(rove::named<"tests.one">(rove::fn<first>), rove::named<"tests.one">(rove::fn<second>));
}
