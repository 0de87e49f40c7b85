// expect: rove: an argument of this type cannot travel: the comparator or hash function of a container in it has members
#include <set>

#include "common.hpp"

void take(const std::vector<std::set<int, bool (*)(int, int)>>& /*sets*/) {}
void f(const std::vector<std::set<int, bool (*)(int, int)>>& sets) {
    some_peer().sync(rove::fn<take>, sets);
}
