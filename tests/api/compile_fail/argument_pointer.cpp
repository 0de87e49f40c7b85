// expect: rove: a pointer means nothing on another node
#include "common.hpp"

int first(const int* numbers) {
    return *numbers;
}
int f(const int* numbers) {
    return some_peer().sync(rove::fn<first>, numbers);
}
