// expect: rove: a pointer means nothing on another node
#include "common.hpp"

int first(const int* numbers) {
    return *numbers;
}
void f() {
    rove::offer(rove::fn<first>);
}
