// expect: rove: a result of this type cannot travel: it holds a pointer, a view or a rove::Buffer
#include "common.hpp"

std::map<int, std::string_view> make() {
    return {};
}
void f() {
    some_peer().sync(rove::fn<make>);
}
