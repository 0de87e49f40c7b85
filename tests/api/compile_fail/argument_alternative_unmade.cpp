// expect: rove: an argument of this type cannot travel: cereal reads it, or a type in it, into a default-constructed object
#include "common.hpp"

struct Id {  // whose bytes can be copied
    constexpr explicit Id(int number) : number(number) {}
    int number;
};
void take(const std::map<int, std::variant<std::string, Id>>& /*ids*/) {}
void f(const std::map<int, std::variant<std::string, Id>>& ids) {
    some_peer().sync(rove::fn<take>, ids);
}
