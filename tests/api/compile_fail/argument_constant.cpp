// expect: rove: an argument of this type cannot travel: it holds a constant, as std::pair<const K, V> does
#include "common.hpp"

void take(const std::map<int, std::string>::value_type& /*entry*/) {}
void f(const std::map<int, std::string>& map) {
    some_peer().sync(rove::fn<take>, *map.begin());
}
