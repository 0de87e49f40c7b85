// expect: rove: a result of this type cannot travel: the comparator or hash function of a container in it has members
#include <unordered_map>

#include "common.hpp"

struct Seeded {
    std::size_t operator()(int value) const { return static_cast<std::size_t>(value) ^ seed; }
    std::size_t seed = 0;
};
std::unordered_map<int, int, Seeded> make() {
    return {};
}
void f() {
    some_peer().sync(rove::fn<make>);
}
