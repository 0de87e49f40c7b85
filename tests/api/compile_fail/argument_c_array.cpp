// expect: rove: a C array cannot be a parameter
#include "common.hpp"

int sum(const int (&numbers)[3]) {
    return numbers[0] + numbers[1] + numbers[2];
}
int f(const int (&numbers)[3]) {
    return some_peer().sync(rove::fn<sum>, numbers);
}
