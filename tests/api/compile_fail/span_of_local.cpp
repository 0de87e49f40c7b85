// expect: rove: a std::span<T> that can be written to is memory on the node where the function runs
#include "common.hpp"

void clear(std::span<int> numbers) {
    for (int& number : numbers) number = 0;
}
void f(std::vector<int>& numbers) {
    some_peer().sync(rove::fn<clear>, numbers);
}
