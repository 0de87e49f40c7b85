// expect: rove: a result of this type cannot travel: the deleter of a std::unique_ptr in it has members (or is a pointer)
#include "common.hpp"

std::unique_ptr<int, void (*)(int*)> make() {
    return {nullptr, nullptr};
}
void f() {
    some_peer().sync(rove::fn<make>);
}
