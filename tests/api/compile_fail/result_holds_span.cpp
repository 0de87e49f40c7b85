// expect: rove: a result of this type cannot travel: it, or a type in it, holds a pointer, a reference or a view
#include "common.hpp"

struct Part {
    std::span<const int> numbers;
};
Part make() {
    return {};
}
void f() {
    some_peer().sync(rove::fn<make>);
}
