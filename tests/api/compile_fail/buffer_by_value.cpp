// expect: rove: a rove::Buffer<T> is passed to a function that takes a std::span<T>
#include "common.hpp"

void take(const std::vector<int>& /*numbers*/) {}
void f(const rove::Buffer<int>& numbers) {
    some_peer().sync(rove::fn<take>, numbers);
}
