// expect: rove: the views that a function can take are std::span<const T>, of no fixed size, and std::string_view
#include "common.hpp"

void take(std::span<const int, 3> /*values*/) {}
void f(const std::array<int, 3>& values) {
    some_peer().sync(rove::fn<take>, values);
}
